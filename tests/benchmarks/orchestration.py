"""What the pipeline adds to the model: wall time of a night ÷ its critical path.

The wall time runs from the first model call to the moment at which `latest` has moved. The critical path is computed
from the model server's own log of call durations: in each iteration the slowest reflection, the slowest curate call and
the slowest call of each round of merging; iterations follow one another, because each builds on the playbook before it.
Every trace is a failure, so that every stage is busy. Everything is real but the model: `combee nightly`, a Prefect
server, a `file://` store, litellm over HTTP.

    python tests/benchmarks/orchestration.py [--median 5 1] [--batch-size 100 40]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Call, calls_in, picture, prefect_server, save, simulated_server

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

if TYPE_CHECKING:
    from command import Combee
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRACES = 200
SIGMA = 0.5
DAY = date(2026, 11, 29)
LIMITS = {(100, 5.0): 1.10}
"""Batch size and median seconds of a call → the most that the ratio may be."""
COLOURS = {"reflect": "#4c78a8", "curate": "#f58518", "merge": "#54a24b"}


Round = tuple[Call, ...]
"""Calls of one stage that do not wait for one another."""


@dataclass(frozen=True)
class Night:
    """What was measured: every call, in rounds, and when `latest` had moved."""

    rounds: tuple[Round, ...]
    published: float

    @property
    def calls(self) -> list[Call]:
        """All calls."""
        return [call for one in self.rounds for call in one]

    @property
    def wall(self) -> float:
        """Seconds from the first call to the published version."""
        return self.published - min(call.start for call in self.calls)

    @property
    def critical(self) -> float:
        """Seconds that no orchestration can save."""
        return sum(_slowest(one).seconds for one in self.rounds)

    @property
    def ratio(self) -> float:
        """At best 1."""
        return self.wall / self.critical

    def lost(self) -> dict[str, float]:
        """Where the seconds beyond the critical path went: within the rounds of a stage, and before them.

        Adds up to `wall` - `critical`.
        """
        lost: dict[str, float] = {}
        before: Round | None = None
        for one in self.rounds:
            within = _last(one) - _first(one) - _slowest(one).seconds
            _add(lost, f"in {one[0].stage}", within)
            if before:
                _add(lost, f"before {one[0].stage}", _first(one) - _last(before))
            before = one
        if before:
            _add(lost, "before publish", self.published - _last(before))
        return lost


def _add(sums: dict[str, float], key: str, value: float) -> None:
    sums[key] = sums.get(key, 0.0) + value


def _slowest(one: Round) -> Call:
    return max(one, key=lambda call: call.seconds)


def _first(one: Round) -> float:
    return min(call.start for call in one)


def _last(one: Round) -> float:
    return max(call.end for call in one)


def rounds_of(calls: Sequence[Call]) -> Iterator[Round]:
    """The calls in rounds: one ends where the stage changes, or where a merge call begins after the others ended."""
    one: list[Call] = []
    for call in calls:
        if one and (call.stage != one[0].stage or (call.stage == "merge" and call.start > _last(tuple(one)))):
            yield tuple(one)
            one = []
        one.append(call)
    if one:
        yield tuple(one)


def night(combee: Combee, batch_size: int, median: float) -> Night:
    """Run one night of `TRACES` traces and read the server's log."""
    with simulated_server(median, SIGMA) as server, tempfile.TemporaryDirectory() as folder:
        traces, store = Path(folder) / "traces", Path(folder) / "store"
        traces.mkdir()
        (traces / "day.jsonl").write_bytes(day_jsonl(World(), TRACES, seed=1, on=DAY))
        where = ("--traces", traces, "--day", DAY, "--store", f"file://{store}", "--playbook", "bench")
        model = ("--model", "openai/simulated/overload", "--api-base", server.url, "--concurrency", 128)
        # A call that is sent twice would be in the log twice, and its second answer on no path.
        hedge = ("--hedge", 0) if "--hedge" in combee("nightly", "--help").out else ()
        done = combee("nightly", *where, *model, *hedge, "--batch-size", batch_size, "--json", timeout=1800)
        if done.code:
            raise SystemExit(f"the night failed:\n{done.err[-3000:]}")
        published = (store / "playbooks" / "bench" / "latest.json").stat().st_mtime
        calls = [call for call in calls_in(server.log()) if call.stage in COLOURS]
        return Night(tuple(rounds_of(calls)), published)


def row(batch_size: int, median: float, measured: Night) -> dict[str, Any]:
    """A line of the table."""
    limit = LIMITS.get((batch_size, median))
    return {
        "batch": f"batch {batch_size}, {median:g} s a call",
        "critical_s": round(measured.critical, 2),
        "wall_s": round(measured.wall, 2),
        "wall/critical": round(measured.ratio, 4),
        "calls": len(measured.calls),
        "rounds": len(measured.rounds),
        **({"limit": limit, "ratio": measured.ratio / limit} if limit else {}),
        **{f"{place}_s": round(seconds, 2) for place, seconds in measured.lost().items()},
    }


# pictures


def drawn(nights: dict[tuple[int, float], Night]) -> Figure:
    """The first iteration's calls of the first night over time, and the ratio of every night."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1.3))
    (batch_size, median), measured = next(iter(nights.items()))
    _gantt(left, measured)
    left.set_title(f"One iteration, batch {batch_size}, {median:g} s a call (median): every call, critical path framed")
    _ratios(right, nights)
    return figure


def _gantt(axes: Axes, measured: Night) -> None:
    from matplotlib.patches import Patch

    zero, line, ends = _first(measured.rounds[0]), 0, False
    for one in measured.rounds:
        if ends and one[0].stage == "reflect":
            break
        ends = one[0].stage == "merge"
        for call in one:
            on_path = call is _slowest(one)
            edge = {"edgecolor": "black", "linewidth": 1.2, "zorder": 3} if on_path else {"linewidth": 0}
            label = one[0].stage if call is one[0] else None
            axes.barh(
                line, call.seconds, left=call.start - zero, height=1, color=COLOURS[call.stage], label=label, **edge
            )
            line += 1
        axes.axvline(_last(one) - zero, color="0.6", linewidth=0.8, linestyle=":")
    axes.invert_yaxis()
    axes.set(xlabel="seconds since the first call", ylabel="model calls, in order of their start", xlim=(0, None))
    axes.legend(handles=[Patch(color=colour, label=stage) for stage, colour in COLOURS.items()], loc="upper right")


def _ratios(axes: Axes, nights: dict[tuple[int, float], Night]) -> None:
    names = [f"batch {batch_size}\n{median:g} s" for batch_size, median in nights]
    ratios = [one.ratio for one in nights.values()]
    axes.bar(names, [ratio - 1 for ratio in ratios], bottom=1, color="#9ecae9", width=0.6)
    for place, ratio in enumerate(ratios):
        axes.text(place, ratio, f"{ratio:.2f}", ha="center", va="bottom")
    for place, setting in enumerate(nights):
        if limit := LIMITS.get(setting):
            axes.plot([place - 0.4, place + 0.4], [limit, limit], color="#e45756", linewidth=2)
            axes.text(place, limit, f"limit {limit:.2f}", color="#e45756", ha="center", va="bottom", fontsize=8)
    axes.set(title="Wall time ÷ critical path", ylim=(1, 1 + 1.15 * (max(*ratios, *LIMITS.values()) - 1)))
    axes.tick_params(axis="x", labelsize=8)


def main() -> None:
    """Measure, print, keep."""
    import pandas

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--median", type=float, nargs="+", default=[5.0, 1.0], help="seconds of a call")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[100, 40])
    given = parser.parse_args()
    with prefect_server() as combee:
        night(combee, TRACES // 2, 0.01)  # whatever is done once in a server's life
        nights = {(size, median): night(combee, size, median) for median in given.median for size in given.batch_size}
    frame = pandas.DataFrame([row(*setting, measured) for setting, measured in nights.items()])
    save("orchestration", frame, {"traces": TRACES, "sigma": SIGMA, "concurrency": 128})
    picture("orchestration", drawn(nights))


if __name__ == "__main__":
    main()
