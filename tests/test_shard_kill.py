"""kill -9 in the middle of a shard: of a large task, what its items have answered is saved one by one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import Combee, kill
from simserver import SimulatedServer, simulated_server

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

SHARD, SAVED, IN_FLIGHT = 64, 40, 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model whose answers take so long that waves of calls are told apart."""
    with simulated_server(tmp_path, latency=1.0) as running:
        yield running


@pytest.fixture
def command(tmp_path: Path) -> tuple[Any, ...]:
    """Learn from as many traces as one shard holds."""
    day = tmp_path / "day.jsonl"
    day.write_bytes(day_jsonl(World(0), SHARD, 0, date(2026, 3, 2)))
    size = ("--batch-size", SHARD, "--shard-size", SHARD)
    return ("learn", day, "--playbook", "p", *size, "--json")


def saved(store: Path) -> int:
    """Accepted answers in the store."""
    return sum(".rejected-" not in path.name for path in store.glob("answers/*/*.json"))


def kill_when_saved(process: subprocess.Popen[str], store: Path, count: int) -> int:
    """SIGKILL as soon as so many answers are saved; how many there are then."""
    deadline = time.monotonic() + 200
    while saved(store) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never got so far"
        time.sleep(0.01)
    kill(process)
    return saved(store)


def reflections(server: SimulatedServer) -> int:
    """Calls that reached the server, when it has ended all that it was asked."""
    while server.stats()["running"]:
        time.sleep(0.1)
    return int(server.stats()["stages"]["reflect"]["calls"])


def test_a_rerun_of_a_killed_shard_asks_only_for_what_was_not_saved(
    combee: Combee, server: SimulatedServer, command: tuple[Any, ...], tmp_path: Path
) -> None:
    limits = ("--concurrency", IN_FLIGHT, "--max-concurrency", IN_FLIGHT, "--hedge", 0)
    model = ("--model", "openai/simulated/overload", "--api-base", server.url, *limits)
    far = (*command, *model, "--store", f"file://{tmp_path}/store")
    kept = kill_when_saved(combee.start(*far), tmp_path / "store", SAVED)
    before = reflections(server)
    assert SAVED <= kept < SHARD
    assert kept <= before <= kept + IN_FLIGHT

    resumed = combee(*far).json

    again = reflections(server) - before
    assert again == SHARD - kept <= SHARD - SAVED, "at most 24: nothing that is saved is asked for again"
    assert resumed["model_calls"]["reflect"] == again
    assert before + again - SHARD <= IN_FLIGHT, "paid for twice: only what was in flight"
    assert resumed["accounting"]["in"] == SHARD
    assert resumed["accounting"]["failed"] == resumed["accounting"]["deferred"] == 0

    calm = combee(*command, "--store", f"file://{tmp_path}/calm").json
    assert resumed["digest"] == calm["digest"]
