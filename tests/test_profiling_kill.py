"""The profiling sub-flow from outside: kill -9 inside it, samples, and what it costs, said before the first call."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import Combee, kill
from simserver import SimulatedServer, simulated_server

from combee_core import measured
from combee_core.adapters.stores import open_store
from combee_core.runs import Run
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

MODEL = "openai/simulated/overload"
IN_FLIGHT = 4
PROFILE, TOTAL = (5, 10, 20), 72
FEW, OF_FEW = (5, 10), 36


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model whose answers take so long that a moment inside a batch can be met."""
    with simulated_server(tmp_path, latency=0.3) as running:
        yield running


def source(kind: str, count: int, tmp_path: Path) -> tuple[object, ...]:
    """So many traces or samples, as the command names them."""
    if kind == "samples":
        return ("--samples", f"world:{count}")
    path = tmp_path / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), count, 0, date(2026, 3, 2)))
    return (path,)


def over_http(server: SimulatedServer, *more: object) -> tuple[object, ...]:
    limits = ("--concurrency", IN_FLIGHT, "--max-concurrency", IN_FLIGHT, "--hedge", 0)
    return ("--model", MODEL, "--api-base", server.url, *limits, "--json", *more)


def run_in(store: Path) -> Run:
    """The only run of a store."""
    (plan,) = store.glob("runs/*/plan.json")
    return Run(open_store(f"file://{store}"), plan.parent.name)


def record(run: Run, name: str) -> tuple[bytes, Any]:
    """What a run's record holds and what tells when it was written; None before it is."""
    blob = run.store.read(run.path(name))
    assert blob is not None, f"{name} was not recorded"
    return blob.data, blob.tag


def calls(server: SimulatedServer) -> dict[str, int]:
    """Calls by stage, once the server has ended all that it was asked."""
    while server.stats()["running"]:
        time.sleep(0.1)
    return {stage: count["calls"] for stage, count in server.stats()["stages"].items() if stage != "other"}


def saved_in(store: Path, number: int) -> int:
    """Answers that batch `number` has saved so far; 0 before the batches in front of it are done."""
    if not list(store.glob(f"runs/*/batch-{number:04d}.json")):
        return 0
    before = [run_in(store).state(one) for one in range(1, number)]
    paid = sum(receipt.accepted for state in before if state for receipt in state.receipts)
    return sum(".rejected-" not in path.name for path in store.glob("answers/*/*.json")) - paid


def kill_in_batch(process: subprocess.Popen[str], store: Path, number: int, answers: int) -> None:
    """SIGKILL when the batch has saved so many answers and has no state yet."""
    deadline = time.monotonic() + 200
    while saved_in(store, number) < answers:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never got so far"
        time.sleep(0.01)
    kill(process)
    assert not list(store.glob(f"runs/*/state-{number:04d}.json")), "the batch is not done"


@pytest.mark.parametrize("kind", ["samples"])
def test_profiling_that_was_killed_goes_on_with_its_candidates_and_pays_once(
    combee: Combee, server: SimulatedServer, tmp_path: Path, kind: str
) -> None:
    store, sizes = tmp_path / "store", ("--candidates", ",".join(map(str, PROFILE)))
    command = ("learn", *source(kind, TOTAL, tmp_path), "--store", f"file://{store}", *sizes, *over_http(server))
    process = combee.start(*command)
    kill_in_batch(process, store, 2, answers=3)
    run = run_in(store)
    begun = record(run, "sizing.json")
    assert run.decision() is None
    before = calls(server)

    done = combee(*command).json

    made = calls(server)
    assert record(run, "sizing.json") == begun, "the candidates are those of the first start"
    assert run_in(store).key == run.key
    sizing, decision = run.sizing(), run.decision()
    assert sizing is not None
    assert decision is not None
    again = (*PROFILE, PROFILE[1])
    assert (sizing.profile, sizing.batch_size, sizing.reason) == (again, decision.batch_size, decision.reason)
    for stage in ("reflect", *(["rollout"] if kind == "samples" else [])):
        assert TOTAL <= made[stage] <= TOTAL + IN_FLIGHT, "paid for twice: only what was in flight"
        assert done["model_calls"][stage] == made[stage] - before[stage]
    assert all(count <= 2 for count in server.asked().values())
    assert sum(server.asked().values()) - len(server.asked()) <= IN_FLIGHT
    seen = [(one.batch_size, one.delay is not None) for one in run.observations(range(1, 5)) if one]
    assert seen == [(5, True), (10, False), (20, True), (10, True)], "half a batch is no measurement, so once more"
    assert decision.bound_by != "fallback"
    assert [point.batch_size for point in decision.points] == list(PROFILE)
    assert [one.run for one in measured.all_known(run.store)] == [run.key], "the next run takes this curve"

    decided = record(run, "decision.json")
    assert set(combee(*command).json["model_calls"].values()) == {0}
    assert record(run, "decision.json") == decided
    assert calls(server) == made


def test_samples_that_are_measured_on_are_rolled_out_and_reflected_on_once(
    combee: Combee, server: SimulatedServer, tmp_path: Path
) -> None:
    where = ("--store", f"file://{tmp_path}/store")
    done = combee("learn", *source("samples", OF_FEW, tmp_path), *where, *over_http(server)).json
    run = run_in(tmp_path / "store")
    sizing = run.sizing()
    assert sizing is not None
    assert sizing.profile == FEW
    made = calls(server)
    assert (made["rollout"], made["reflect"]) == (OF_FEW, OF_FEW)
    assert {stage: count for stage, count in done["model_calls"].items() if count} == made
    assert set(server.asked().values()) == {1}
    assert all(one and one.delay for one in run.observations(range(1, len(FEW) + 1)))


def test_what_measuring_costs_is_said_before_the_first_call_and_is_what_it_costs(
    combee: Combee, server: SimulatedServer, tmp_path: Path
) -> None:
    stamped = {"PREFECT_LOGGING_FORMATTERS_STANDARD_FLOW_RUN_FMT": "%(created)f | %(message)s"}
    paper = ("--grouping", "paper", "--merge", "paper", "--store", f"file://{tmp_path}/store")
    done = replace(combee, environ=stamped)("learn", *source("traces", OF_FEW, tmp_path), *paper, *over_http(server))
    said = re.search(
        r"(\S+) \| batch size: measured on batches of 5, 10, .*? take at most (\d+) curate calls and (\d+) merge calls",
        unwrapped(done.err),
    )
    assert said is not None, done.err[-3000:]
    assert done.code == 0
    first_call = min(line["at"] for line in server.log() if line["stage"])
    assert float(said[1]) < first_call
    run = run_in(tmp_path / "store")
    measured_on = [run.state(number) for number in range(1, len(FEW) + 1)]
    paid = [receipt.stage for state in measured_on if state for receipt in state.receipts]
    assert (paid.count("curate"), paid.count("merge")) == (int(said[2]), int(said[3])) == (2 + 3, 1 + 1)
    assert calls(server)["reflect"] == OF_FEW == done.json["model_calls"]["reflect"]


def unwrapped(text: str) -> str:
    """A log without the line breaks that a console puts into long lines."""
    return " ".join(text.split())
