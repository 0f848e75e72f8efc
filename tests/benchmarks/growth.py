"""What a night costs as its traces grow: CPU and peak memory of the flow process, model calls, Prefect task runs.

Each case is one `combee nightly` in a fresh process (`growing_night.py`), on a Prefect server, with batches of a
thousand traces (but for `auto`) that lie in files of a thousand rows. All are failures, so that all are reflected on
and curated; there are 120 rules to learn whatever the number of traces, so that the playbook, and with it every prompt,
stays of one size.

- `http`: the stand-in answers over HTTP from a process of its own, through litellm. Nothing is subtracted.
- `inprocess`: it answers inside the flow process. Its own CPU is measured call by call (the thread's CPU clock before
  and after) and subtracted.
- `s3`: as `inprocess`, with the store on SeaweedFS.
- `auto`: as `inprocess`, with `--batch-size auto`, the default of `combee nightly`: this night measures the candidates,
  then goes on in the size that it chose, which is far smaller than a thousand.

A night of a thousand other traces goes before, in the same process and into the same playbook. So the figures are
without imports (they are in `start_s`), and the rules are known from the first batch on, as on any night but the very
first, whose first batch is dearer than all others. Task runs are counted twice: when they end, by their log lines in
the flow process, and afterwards on the server. The difference is what the server lost.

CPU a trace is to be flat as the night grows. A night also costs something once, whatever its size; the line through the
smallest and the largest night says how much, in the notes beside the bar, which counts it all the same.

    python tests/benchmarks/growth.py [--cases inprocess http s3 auto] [--largest 100000]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import measured, picture, prefect_server, save, simulated_server
from grown import CPU, FLAT, PEAK, STYLES, TASKS, Grown, drawn
from recorded import ended_in, task_runs
from seaweed import seaweed

from combee_core.adapters.stores import open_store
from combee_core.runs import run_of
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

if TYPE_CHECKING:
    from command import Combee

NIGHT = Path(__file__).with_name("growing_night.py")
DAY = date(2026, 11, 29)
ROWS = 1_000
"""Of a file, and of a batch."""
SIZES = {
    "inprocess": (1_000, 10_000, 100_000),
    "http": (100, 1_000, 10_000),
    "s3": (1_000,),
    "auto": (1_000, 10_000),
}

# a case


@dataclass(frozen=True)
class Bench:
    """The servers that all cases share, and where the traces lie."""

    combee: Combee
    folder: Path

    def run(self, case: str, traces: int, model: Sequence[str], store: str, environ: Mapping[str, str]) -> Grown:
        """Run one night in a fresh process and ask the server what it knows of it."""
        given: dict[str, Any] = {"store": store}
        given |= {"warm": str(self.traces(ROWS, 1)), "traces": str(self.traces(traces, 2))}
        batch_size = "auto" if case == "auto" else ROWS
        given |= {"options": [*model, "--day", str(DAY), "--batch-size", str(batch_size)]}
        home = {"COMBEE_HOME": str(self.combee.home), "PREFECT_HOME": str(self.combee.home / "client")}
        quiet = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING", "OPENAI_API_KEY": "none"}
        cost = measured([sys.executable, str(NIGHT), json.dumps(given)], {**home, **quiet, **environ})
        if cost.code:
            raise SystemExit(f"{case} with {traces} traces ended with {cost.code}")
        took = json.loads(cost.out.splitlines()[-1])
        result = took.pop("result")
        counts = task_runs(self.combee, result["flow_run_id"], took["tasks"])
        if result["accounting"]["in"] != traces:
            raise SystemExit(f"{case}: {result['accounting']} do not add up to {traces} traces")
        return Grown(
            **took,
            case=case,
            traces=traces,
            calls=sum(result["model_calls"].values()),
            flow_runs=len(counts),
            recorded=ended_in(counts),
            most_tasks=max(counts.values()),
            bullets=self.bullets(store, environ),
            batch_size=chosen(store, result["flow_run_id"]) if case == "auto" else ROWS,
        )

    def traces(self, count: int, seed: int) -> Path:
        """A folder of that many traces, written once; its files have seeds of their own, from `seed` on."""
        folder = self.folder / f"traces-{seed}-{count}"
        if not folder.exists():
            folder.mkdir()
            for number, at in enumerate(range(0, count, ROWS), start=seed):
                rows = day_jsonl(World(), min(ROWS, count - at), seed=number, on=DAY)
                (folder / f"{number}.jsonl").write_bytes(rows)
        return folder

    def bullets(self, store: str, environ: Mapping[str, str]) -> int:
        """Entries of the playbook that came out."""
        shown = type(self.combee)(self.combee.home, environ)("playbook", "show", "bench", "--store", store, "--json")
        return sum(len(section["bullets"]) for section in shown.json["sections"]) if "sections" in shown.json else -1


def chosen(store: str, flow_run_id: str) -> int:
    """The batch size that a night chose for itself. Raises `SystemExit` where it has none."""
    run = run_of(open_store(store), flow_run_id)
    sizing = run.sizing() if run else None
    if sizing is None or sizing.batch_size is None:
        raise SystemExit(f"flow run {flow_run_id} has no batch size in {store}")
    return sizing.batch_size


@contextmanager
def surroundings(case: str) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """The model's options, the store and the environment of a case."""
    with tempfile.TemporaryDirectory() as folder:
        if case == "http":
            with simulated_server(log=False) as server:
                model = ["--model", "openai/simulated/overload", "--api-base", server.url]
                yield model, f"file://{folder}/store", {}
        elif case == "s3":
            with seaweed("growth") as s3:
                yield ["--model", "simulated/overload"], "s3://growth/store", s3.environment()
        else:
            yield ["--model", "simulated/overload"], f"file://{folder}/store", {}


# the results


def row(grown: Grown) -> dict[str, Any]:
    """A line of the table."""
    return {
        "case": grown.case,
        "traces": grown.traces,
        "wall_s": round(grown.wall, 1),
        "cpu_ms_a_trace": round(grown.cpu_each, 2),
        "stand_in_ms_a_trace": round(1_000 * grown.stand_in / grown.traces, 2),
        "start_s": round(grown.start, 1),
        "peak_mib": round(grown.peak),
        "calls": grown.calls,
        "batch_size": grown.batch_size,
        "flow_runs": grown.flow_runs,
        "task_runs": grown.tasks,
        "most_of_a_flow_run": grown.most_tasks,
        "lost": grown.tasks - grown.recorded,
        "bullets": grown.bullets,
    }


def bars(cases: Sequence[Grown]) -> Iterator[dict[str, Any]]:
    """The limits that we keep; S3 is shown and has none on CPU."""
    for grown in cases:
        name = f"{grown.case}, {grown.traces:,} traces"
        if grown.case != "s3" and grown.traces >= ROWS:
            yield _bar(f"{name}: CPU ms a trace", grown.cpu_each, CPU)
        yield _bar(f"{name}: peak MiB", grown.peak, PEAK)
        yield _bar(f"{name}: task runs of a flow run", grown.most_tasks, TASKS)
        yield _bar(f"{name}: task runs ended ÷ recorded", grown.tasks / max(grown.recorded, 1), 1)
    each = [grown.cpu_each for grown in whole_nights(cases, "inprocess")]
    if len(each) > 1:
        yield _bar("inprocess: CPU a trace, most ÷ least", max(each) / min(each), FLAT)


def whole_nights(cases: Sequence[Grown], case: str) -> list[Grown]:
    """The nights of a case that fill a batch, smallest first."""
    return sorted((g for g in cases if g.case == case and g.traces >= ROWS), key=lambda grown: grown.traces)


def fixed_costs(cases: Sequence[Grown]) -> dict[str, str]:
    """What a night of each case costs once, by the line through its smallest and its largest night."""
    lines = {}
    for case in STYLES:
        nights = whole_nights(cases, case)
        if len(nights) > 1:
            few, many = nights[0], nights[-1]
            each = (many.cpu_own - few.cpu_own) / (many.traces - few.traces)
            once = few.cpu_own - each * few.traces
            line = f"{once:.2f} s a night and {1_000 * each:.2f} ms a trace"
            lines[f"{case}: CPU through {few.traces:,} and {many.traces:,}"] = line
    return lines


def _bar(name: str, value: float, limit: float) -> dict[str, Any]:
    return {"measure": name, "value": value, "limit": limit, "ratio": value / limit}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--largest", type=int, default=100_000, help="leave out more traces than these")
    given = parser.parse_args()
    grown = []
    with prefect_server() as combee, tempfile.TemporaryDirectory() as folder:
        bench = Bench(combee, Path(folder))
        for case, size in [(name, size) for name in given.cases for size in SIZES[name] if size <= given.largest]:
            with surroundings(case) as (model, store, environ):
                grown.append(bench.run(case, size, model, store, environ))
            print(row(grown[-1]), flush=True)
    keep(grown)


def keep(grown: Sequence[Grown]) -> None:
    """The table, the limits and the picture."""
    import pandas

    notes = {
        "batch size": f"{ROWS}, and auto for auto",
        "rules": World().rules,
        "store": "file://, and s3:// on SeaweedFS for s3",
    }
    save("growth", pandas.DataFrame(map(row, grown)), notes)
    save("growth-limits", pandas.DataFrame(bars(grown)), {**notes, **fixed_costs(grown)})
    picture("growth", drawn(grown))


if __name__ == "__main__":
    main()
