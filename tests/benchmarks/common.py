"""What the benchmarks share: tables with bars, pictures, servers of their own, and what a child process costs.

    save("orchestration", frame, {"latency": 5.0})   # bench-results/orchestration.json and .csv
    picture("orchestration", figure)                 # tests/benchmarks/pictures/orchestration.svg and .png

A row of a table with a `ratio` and a `limit` is a bar: `ratio` is the measured value divided by `limit`. It is kept
where the ratio is at most 1, or at least 1 where the column `bar` says "at least". A missed bar is printed, not raised.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import simserver  # noqa: E402
from command import Combee  # noqa: E402
from simserver import SimulatedServer  # noqa: E402

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

RESULTS = ROOT / "bench-results"
PICTURES = Path(__file__).parent / "pictures"
AT_LEAST = "at least"


# tables


@dataclass(frozen=True)
class Bar:
    """A limit that we keep, and how it stands. `ratio` is the measured value divided by `limit`."""

    name: str
    ratio: float
    limit: float
    at_least: bool = False

    @property
    def is_kept(self) -> bool:
        """True on the right side of the limit."""
        return self.ratio >= 1 if self.at_least else self.ratio <= 1

    @property
    def line(self) -> str:
        """As it is printed."""
        sign, value = "≥" if self.at_least else "≤", self.ratio * self.limit
        verdict = "ok    " if self.is_kept else "MISSED"
        return f"{verdict}  {self.name}: {value:.4g} {sign} {self.limit:.4g} (ratio {self.ratio:.3f})"


def save(name: str, frame: pandas.DataFrame, notes: Mapping[str, object]) -> None:
    """Print a table and its bars, and keep it as `bench-results/<name>.json` and `.csv`."""
    bars = bars_of(frame)
    print(f"\n{name}\n{frame.to_string(index=False, na_rep='', float_format=lambda x: f'{x:.4g}')}")
    for key, value in notes.items():
        print(f"{key}: {value}")
    for bar in bars:
        print(bar.line)
    RESULTS.mkdir(exist_ok=True)
    frame.to_csv(RESULTS / f"{name}.csv", index=False)
    data = {
        "name": name,
        "machine": machine(),
        "notes": dict(notes),
        "bars": [asdict(bar) for bar in bars],
        "records": json.loads(frame.to_json(orient="records")),
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1, default=str, ensure_ascii=False) + "\n")


def bars_of(frame: pandas.DataFrame) -> list[Bar]:
    """The bars of a table, in its order; a bar is called by what its row begins with."""
    if not {"ratio", "limit"} <= set(frame.columns):
        return []
    bounded = frame[frame["ratio"].notna() & frame["limit"].notna()]
    return [
        Bar(_called(row), float(row["ratio"]), float(row["limit"]), row.get("bar") == AT_LEAST)
        for row in bounded.to_dict(orient="records")
    ]


def results_of(benchmark: str) -> list[Path]:
    """What a benchmark has kept: `<benchmark>.json`, and `<benchmark>-….json` where it has several tables."""
    return sorted([*RESULTS.glob(f"{benchmark}.json"), *RESULTS.glob(f"{benchmark}-*.json")])


def saved_bars(result: Path) -> list[Bar]:
    """The bars of a kept table."""
    return [Bar(**bar) for bar in json.loads(result.read_text())["bars"]]


def _called(row: Mapping[Any, Any]) -> str:
    """The texts and whole numbers that a row begins with."""
    front = takewhile(lambda pair: isinstance(pair[1], str | int), row.items())
    return ", ".join(value if isinstance(value, str) else f"{key} {value}" for key, value in front)


def machine() -> dict[str, object]:
    """Size of this machine, and the command that ran on it."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages * page / 2**30, 1),
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": " ".join(["python", f"tests/benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
    }


# pictures


def picture(name: str, figure: Figure) -> None:
    """Keep a figure for the README. The same figure gives the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "combee"}):
        figure.savefig(PICTURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
        figure.savefig(PICTURES / f"{name}.png", bbox_inches="tight", dpi=150, metadata={"Software": None})
    print(f"picture: {(PICTURES / name).relative_to(ROOT)}.svg and .png")


# servers


@contextmanager
def simulated_server(
    latency: float = 0.0, sigma: float = 0.0, log: bool = True, seed: int | None = None, port: int = 0
) -> Iterator[SimulatedServer]:
    """The stand-in for a model on loopback, in a process of its own: `url`, `stats()` and, with `log`, `log()`.

    Each call takes `latency` seconds times a lognormal draw of spread `sigma`, fixed by its prompt, or with a `seed` by
    its number.
    """
    delays = {"latency": latency, "sigma": sigma, "seed": seed}
    with (
        tempfile.TemporaryDirectory() as folder,
        simserver.simulated_server(Path(folder), **delays, logged=log, port=port) as server,
    ):
        yield server


@contextmanager
def prefect_server() -> Iterator[Combee]:
    """The `combee` command with a home and a Prefect server of its own, which is stopped at the end."""
    with tempfile.TemporaryDirectory() as home:
        combee = Combee(Path(home))
        started = combee("server", "up")
        if started.code:
            raise SystemExit(f"no Prefect server: {started.err}")
        try:
            yield combee
        finally:
            combee("server", "down")


@dataclass(frozen=True)
class Call:
    """One call as a server saw it; `stage` is empty for a prompt that is not ours, times are seconds since 1970."""

    stage: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


def calls_in(lines: Sequence[dict[str, Any]]) -> list[Call]:
    """The calls of a server's log, by their start. Raises `RuntimeError` for one that was not answered well."""
    began = {line["n"]: line["at"] for line in lines if line["event"] == "start"}
    ended = [line for line in lines if line["event"] == "end"]
    if bad := [line for line in ended if line["status"] != 200]:
        raise RuntimeError(f"{len(bad)} calls were not answered: {bad[0]}")
    calls = [Call(line["stage"], began[line["n"]], line["at"]) for line in ended]
    return sorted(calls, key=lambda call: call.start)


# children


@dataclass(frozen=True)
class Cost:
    """What a child process said and took: seconds of wall and CPU, and its peak memory in MiB."""

    code: int
    out: str
    wall: float
    cpu: float
    peak: float


def measured(command: Sequence[str], environ: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end; its stderr is ours. CPU is that of the child and of the children it waited for.

    Linux counts the peak of this process as the child's too, where it is larger: import pandas afterwards.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return Cost(
            code=process.returncode,
            out=out.read(),
            wall=time.monotonic() - began,
            cpu=used.ru_utime + used.ru_stime,
            peak=used.ru_maxrss / 1024,
        )
