"""The reduce against its peers: the same 100 reflections, the same delays, the same kind of server.

The server draws its delays by the order of the calls, so that the k-th call takes equally long whoever makes it. Each
way may have 128 calls in flight. GEPA's `ComBEEReflectionLM` asks for its maps one by one on its default path; with two
proposals and a model that has `batch_complete` it sends them together. That takes ten at a time by default, which would
be two waves, so it is given the 128 that ours has. The release of gepa on the package index has no such class: then the
calls it makes are restated with the parts that the release has, and table, notes and picture say so. GEPA's prompts get
a short answer here: what is compared is time.

    pip install gepa==0.1.4        # or 'combee-pipeline[bench]'; without it our own rows alone are measured
    python tests/benchmarks/peers.py [--median 1] [--seeds 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING, Any

from common import AT_LEAST, Call, calls_in, picture, save, simulated_server
from gepas import RESTATED, proposals, whose
from ours import (
    IN_FLIGHT,
    MODEL,
    PAPER,
    N,
    Way,
    in_one_batch,
    in_two_batches,
    one_by_one,
    ours,
    reflections,
    rules_in,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGMA = 0.5
ONE, TWO, DEFAULT = "Combee", "Combee, two batches at once", "Combee, merge as by default"
GEPA_ONE, GEPA_TWO = "GEPA ComBEE, default path", "GEPA ComBEE, two proposals batched"
NAIVE, SEQUENTIAL = "one call for all (naive)", "one call each (sequential)"
SHARE_OF_IDEAL = 0.85


@dataclass(frozen=True)
class Timing:
    """One way, once: seconds from its first call until the result is there, its calls, the rules that survived."""

    wall: float
    calls: tuple[Call, ...]
    rules: int | None = None

    @property
    def serial(self) -> float:
        """Seconds of all calls one after the other."""
        return sum(call.seconds for call in self.calls)

    @property
    def critical(self) -> float:
        """Seconds of the slowest call of each stage."""
        stages = {call.stage for call in self.calls}
        return sum(max(call.seconds for call in self.calls if call.stage == stage) for stage in stages)


def timed(way: Way, median: float, seed: int, reduces: int = 0) -> Timing:
    """Run a way on a fresh server. `reduces` is the number of last calls that are reduces where no prompt tells."""
    with simulated_server(median, SIGMA, seed=seed) as server:
        done, rules = way(server.url, seed)
        calls = calls_in(server.log())
    if reduces:
        stages = ["map"] * (len(calls) - reduces) + ["reduce"] * reduces
        calls = [replace(call, stage=stage) for call, stage in zip(calls, stages, strict=True)]
    return Timing(done - calls[0].start, tuple(calls), rules)


# the table


def measure(median: float, seeds: Sequence[int], with_gepa: bool) -> dict[str, list[Timing]]:
    """Every way with every seed; the sequential one, which takes as long as all others together, with one."""
    merge_as_by_default = PAPER.model_copy(update={"merge": "auto"})
    ways: dict[str, tuple[Way, int]] = {
        ONE: (ours(in_one_batch), 0),
        TWO: (ours(in_two_batches), 0),
        DEFAULT: (ours(in_one_batch, merge_as_by_default), 0),
        NAIVE: (ours(in_one_batch, naive=True), 0),
    }
    if with_gepa:
        known = reflections()
        ways |= {
            name: (proposals(known, MODEL, count, IN_FLIGHT), count) for name, count in ((GEPA_ONE, 1), (GEPA_TWO, 2))
        }
    for way, reduces in ways.values():
        timed(way, 0.0, 0, reduces)  # whatever a library does once in a process
    found = {name: [timed(way, median, seed, reduces) for seed in seeds] for name, (way, reduces) in ways.items()}
    return {**found, SEQUENTIAL: [timed(ours(one_by_one), median, seeds[0])]}


def row(name: str, timings: Sequence[Timing], gepa: str) -> dict[str, Any]:
    """A line of the table: means over the seeds. `gepa` says whose code makes GEPA's calls."""
    known = [timing.rules for timing in timings if timing.rules is not None]
    critical = mean(timing.critical for timing in timings) if name != SEQUENTIAL else timings[0].serial
    wall = mean(timing.wall for timing in timings)
    return {
        "way": name,
        "made by": gepa if name in (GEPA_ONE, GEPA_TWO) else "ours",
        "calls": mean(len(timing.calls) for timing in timings),
        "wall_s": wall,
        "serial_s": mean(timing.serial for timing in timings),
        "critical_s": critical,
        "wall/critical": wall / critical,
        "rules_kept": mean(known) if known else None,
    }


def bars(found: Mapping[str, Sequence[Timing]], gepa: str) -> list[dict[str, Any]]:
    """What is to hold, over all seeds together. `gepa` is as for `row`."""
    wall = {name: sum(timing.wall for timing in timings) for name, timings in found.items()}
    ideal = sum(timing.serial for timing in found[ONE]) / sum(timing.critical for timing in found[ONE])
    faster = wall[GEPA_ONE] / wall[ONE]
    share, slower = faster / ideal, wall[TWO] / wall[GEPA_TWO]
    return [
        {
            "way": f"speed-up over GEPA's default path ({faster:.2f}) ÷ the ideal one ({ideal:.2f})",
            "made by": gepa,
            "limit": SHARE_OF_IDEAL,
            "ratio": share / SHARE_OF_IDEAL,
            "bar": AT_LEAST,
        },
        {
            "way": "two batches at once ÷ GEPA's two proposals batched",
            "made by": gepa,
            "limit": 1.0,
            "ratio": slower,
        },
    ]


# the picture


def drawn(found: Mapping[str, Sequence[Timing]], gepa: str) -> Figure:
    """The calls of the first seed over time, way by way. `gepa` is as for `row`."""
    from matplotlib.figure import Figure

    shown = [name for name in (GEPA_ONE, ONE, GEPA_TWO, TWO) if name in found]
    heights = [len(found[name][0].calls) for name in shown]
    figure = Figure(figsize=(9, 1.4 + 0.11 * sum(heights)), layout="constrained")
    rows = figure.subplots(len(shown), 1, sharex=True, height_ratios=heights, squeeze=False)
    for axes, name in zip(rows[:, 0], shown, strict=True):
        restated = f" ({gepa})" if name in (GEPA_ONE, GEPA_TWO) and gepa == RESTATED else ""
        _timeline(axes, f"{name}{restated}", found[name][0])
    rows[-1, 0].set_xlim(0, 1.1 * max(found[name][0].wall for name in shown))
    rows[-1, 0].set_xlabel("seconds since the first call; same colour: same level of the reduce")
    figure.suptitle(f"{N} reflections: the calls of each way, with the same delays")
    return figure


def _timeline(axes: Axes, name: str, timing: Timing) -> None:
    zero = timing.calls[0].start
    for line, call in enumerate(timing.calls):
        colour = "#f58518" if call.stage in ("map", "curate") else "#54a24b"
        axes.barh(line, call.seconds, left=call.start - zero, height=0.9, color=colour)
    axes.axvline(timing.wall, color="black", linewidth=1)
    axes.text(timing.wall, -0.5, f" {timing.wall:.1f} s", va="top")
    axes.set_title(name, loc="left", fontsize=10)
    axes.invert_yaxis()
    axes.set_yticks([])


def main() -> None:
    """Measure, print, keep."""
    import pandas

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--median", type=float, default=1.0, help="seconds of a call")
    parser.add_argument("--seeds", type=int, default=5, help="number of series of delays")
    given = parser.parse_args()
    gepa = whose()
    found = measure(given.median, range(1, given.seeds + 1), with_gepa=bool(gepa))
    rows = [row(name, timings, gepa) for name, timings in found.items()]
    frame = pandas.DataFrame(rows + (bars(found, gepa) if gepa else []))
    met = rules_in("\n".join(one.key_insight for one in reflections()))
    notes = {"reflections": N, "rules in them": met, "median": given.median, "sigma": SIGMA, "seeds": given.seeds}
    save("peers", frame, {**notes, "in flight at most": IN_FLIGHT, "gepa": said_of(gepa)})
    picture("peers", drawn(found, gepa))


def said_of(gepa: str) -> str:
    """A sentence on whose code makes GEPA's calls."""
    if not gepa:
        return "not installed: pip install gepa==0.1.4, or 'combee-pipeline[bench]'"
    if gepa == RESTATED:
        return (
            "this release has no ComBEEReflectionLM. The calls that it makes are restated here, in the same number and "
            "order, with this release's own LM and StatelessReflectionLM; its code is not measured"
        )
    return "its own ComBEEReflectionLM"


if __name__ == "__main__":
    main()
