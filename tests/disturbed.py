"""A night over HTTP that something happens to: how far it is, what it has asked for, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from simserver import SimulatedServer

from combee_core.adapters.stores import open_store
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.ports import Store
from combee_core.records import RunResult
from combee_core.runs import Run
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Version, Versions

DAY = date(2026, 3, 2)
TRACES, BATCH, IN_FLIGHT = 12, 6, 4
MODEL = "openai/simulated/overload"
FOR_EVER = 1200.0
"""Seconds after which nothing will come any more; nothing here depends on how long it takes."""


@dataclass(frozen=True)
class Night:
    """One night of a playbook `p`: its model server, its store, and its traces in a file of `folder`."""

    server: SimulatedServer
    uri: str
    folder: Path
    traces: int = TRACES
    day: date = DAY

    @property
    def command(self) -> tuple[object, ...]:
        """The night as a command."""
        what = ("nightly", "--playbook", "p", "--traces", self._file(), "--day", self.day, "--store", self.uri)
        limits = ("--concurrency", IN_FLIGHT, "--max-concurrency", IN_FLIGHT, "--hedge", 0)
        where = ("--model", MODEL, "--api-base", self.server.url)
        return (*what, "--batch-size", BATCH, *limits, *where, "--json")

    @property
    def request(self) -> RunRequest:
        """The same night as a flow's parameter."""
        model = ModelSettings(
            model=MODEL, api_base=self.server.url, concurrency=IN_FLIGHT, max_concurrency=IN_FLIGHT, hedge=0
        )
        source = Source(uris=(str(self._file()),), day=self.day)
        settings = RunSettings(batch_size=BATCH, model=model)
        return RunRequest(playbook="p", store=self.uri, source=source, settings=settings)

    @property
    def store(self) -> Store:
        """Where it writes."""
        return open_store(self.uri)

    @property
    def calls(self) -> int:
        """Calls that have reached the model server and are part of the run."""
        return self.server.asked().total()

    @property
    def saved(self) -> int:
        """Accepted answers in the store."""
        return sum(".rejected-" not in key for key in self.store.list("answers/"))

    @property
    def repeated(self) -> int:
        """Calls that asked again what was asked before."""
        asked = self.server.asked()
        return asked.total() - len(asked)

    @property
    def runs(self) -> list[Run]:
        """The runs of its store."""
        plans = [key for key in self.store.list("runs/") if key.endswith("/plan.json")]
        return [Run(self.store, key.split("/")[1]) for key in plans]

    @property
    def latest(self) -> Version | None:
        """What agents read."""
        return Versions(self.store, "p").latest()

    @property
    def versions(self) -> list[int]:
        """The numbers of all versions, newest first."""
        return [version.version for version in Versions(self.store, "p").chain()]

    @property
    def accounted(self) -> bool:
        """Whether each finished run says of every trace what became of it, and there is one."""
        results = [run.result() for run in self.runs]
        return any(results) and all(one is None or self._whole(one) for one in results)

    def _whole(self, result: RunResult) -> bool:
        return result.accounting.balances and result.accounting.total == self.traces

    def settled(self) -> None:
        """Wait until the model server has ended all that it was asked."""
        until(lambda: self.server.stats()["running"] == 0)

    def _file(self) -> Path:
        path = self.folder / f"{self.day}.jsonl"
        if not path.exists():
            path.write_bytes(day_jsonl(World(0), self.traces, 0, self.day))
        return path


def configuration(request: RunRequest) -> str:
    """A request as a run configuration in TOML."""
    return "\n".join(_toml(request.model_dump(mode="json", exclude_defaults=True)))


def _toml(table: Mapping[str, Any], *path: str) -> Iterator[str]:
    """Plain values are written as in JSON, tables below them."""
    yield from (f"{name} = {json.dumps(value)}" for name, value in table.items() if not isinstance(value, dict))
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"[{'.'.join((*path, name))}]"
            yield from _toml(value, *path, name)


def until(holds: Callable[[], bool], alive: Callable[[], object] = lambda: None, pause: float = 0.01) -> None:
    """Wait for it; `alive` is asked now and then, and raises where it will never come."""
    deadline, ask = time.monotonic() + FOR_EVER, time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, "it never got so far"
        if time.monotonic() > ask:
            alive()
            ask = time.monotonic() + 5
        time.sleep(pause)


def running(process: subprocess.Popen[Any], log: Path | None = None) -> None:
    """Raise `AssertionError` with its words if the process has ended."""
    assert process.poll() is None, log.read_text() if log else process.communicate()


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def kill_all(pids: list[int]) -> None:
    """kill -9, as when the machine stops: nobody of them sees another one's end."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
