"""What a simulated server was asked: counts by stage, and a line at the start and the end of each call."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from combee_core.base import content_hash
from combee_core.simulation.asked import Asked


@dataclass
class Count:
    """Calls of one stage: started, answered well, hit by a fault."""

    calls: int = 0
    ok: int = 0
    faults: int = 0


@dataclass(frozen=True)
class Call:
    """One call under way: its number from 1, what it asks, when it began (seconds since 1970)."""

    n: int
    asked: Asked
    began: float


@dataclass
class CallLog:
    """Counts, and JSON lines appended to `path` if there is one; a line is one write, so they never mix.

    `clock` gives seconds since 1970 and never goes back. A line tells when it was written (`at`) and how long ago the
    call began (`seconds`).
    """

    clock: Callable[[], float]
    path: Path | None = None
    counts: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    running: int = 0
    peak: int = 0

    @property
    def total(self) -> int:
        """Calls started."""
        return sum(count.calls for count in self.counts.values())

    def start(self, asked: Asked) -> Call:
        """Note that a call began."""
        self.counts[asked.stage or "other"].calls += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        call = Call(self.total, asked, self.clock())
        self._write(call, "start", None)
        return call

    def end(self, call: Call, status: int | str, *, fault: bool) -> None:
        """Note how it ended: an HTTP status, "timeout" or "drop"."""
        count = self.counts[call.asked.stage or "other"]
        count.faults += fault
        count.ok += not fault
        self.running -= 1
        self._write(call, "end", status)

    def stats(self) -> dict[str, Any]:
        """`{"stages": {"reflect": {"calls", "ok", "faults"}}, "total", "running", "peak"}`."""
        stages = {stage: vars(count) for stage, count in sorted(self.counts.items())}
        return {"stages": stages, "total": self.total, "running": self.running, "peak": self.peak}

    def _write(self, call: Call, event: str, status: int | str | None) -> None:
        if self.path is None:
            return
        now = self.clock()
        line = {
            "n": call.n,
            "event": event,
            "stage": call.asked.stage,
            "group": call.asked.group,
            "prompt_sha": content_hash(call.asked.text),
            "status": status,
            "at": round(now, 6),
            "seconds": round(now - call.began, 6),
        }
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, (json.dumps(line) + "\n").encode())
        finally:
            os.close(file)
