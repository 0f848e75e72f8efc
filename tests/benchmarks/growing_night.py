"""One measured night of `growth.py`, in a process of its own: what it took, as a JSON line.

python tests/benchmarks/growing_night.py '{"warm": FOLDER, "traces": FOLDER, "store": URI, "options": […]}'
"""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def night(given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the night that goes before, then the one that is measured; what the latter took."""
    stand_in = _timed_stand_in()
    _command(given, given["warm"])
    start, stand_in[0] = time.process_time(), 0.0
    ended = _count_task_runs()
    began = time.monotonic()
    result = _command(given, given["traces"])
    return {
        "wall": time.monotonic() - began,
        "cpu": time.process_time() - start,
        "stand_in": stand_in[0],
        "start": start,
        "peak": _peak(),
        "tasks": len(ended),
        "result": result,
    }


def _command(given: Mapping[str, Any], traces: str) -> Any:
    from combee_core.cli import main as combee

    where = ["--traces", traces, "--store", given["store"], "--playbook", "bench"]
    out = io.StringIO()
    with redirect_stdout(out):
        code = combee(["nightly", *where, *given["options"], "--json"])
    if code:
        raise SystemExit(code)
    return json.loads(out.getvalue())


def _timed_stand_in() -> list[float]:
    """Let the stand-in of this process add the CPU seconds of its calls to the one number that is returned."""
    from combee_core.simulation.model import SimulatedModel

    seconds, complete = [0.0], SimulatedModel.complete

    async def timed(self: SimulatedModel, request: Any) -> Any:
        # It never waits, so the thread does nothing else meanwhile.
        began = time.thread_time()
        try:
            return await complete(self, request)
        finally:
            seconds[0] += time.thread_time() - began

    SimulatedModel.complete = timed  # type: ignore[method-assign]
    return seconds


def _count_task_runs() -> list[str]:
    """A list that grows with each task run that ends in this process."""
    ended: list[str] = []

    class Count(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith("Finished in state"):
                ended.append(record.levelname)

    logging.getLogger("prefect.task_runs").addHandler(Count())
    return ended


def _peak() -> float:
    """The highest resident memory of this process so far, in MiB (`ru_maxrss` would hold the parent's before exec)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1_024


if __name__ == "__main__":
    print(json.dumps(night(json.loads(sys.argv[1]))))
