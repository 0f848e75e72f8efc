"""Caps, dead keys and long waits, met by whole commands: what they print, where they stop, how they go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from day_files import day_file
from simserver import SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.backlog import entries
from combee_core.versions import Versions


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A provider on loopback."""
    with simulated_server(tmp_path) as running:
        yield running


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Twelve runs."""
    return day_file(tmp_path, 12)


def learn(traces: Path, store: str, *more: object) -> tuple[object, ...]:
    place = f"file://{traces.parent / store}"
    return ("learn", traces, "--store", place, "--model", "simulated/overload", "--batch-size", 6, "--json", *more)


def test_a_run_at_its_cap_publishes_nothing_and_with_a_higher_one_goes_on_without_paying_twice(
    combee: Combee, traces: Path
) -> None:
    free = combee(*learn(traces, "free")).json
    held = combee(*learn(traces, "held", "--max-calls", 10))
    assert held.code == 1
    assert (held.json["status"], held.json["version"]) == ("budget", None)
    assert held.json["error"]["item"] == "--max-calls"
    assert sum(held.json["model_calls"].values()) == 10
    assert "10 of 10 calls (--max-calls); what was paid for is saved: raise the cap" in held.err
    assert "BudgetSpent: budget:" in held.err, "the flow run's state says it too"
    done = combee(*learn(traces, "held", "--max-calls", 1000))
    assert done.code == 0, done.err[-2000:]
    assert (done.json["status"], done.json["digest"]) == ("done", free["digest"])
    assert sum(done.json["model_calls"].values()) == sum(free["model_calls"].values()) - 10


def test_with_on_budget_publish_the_complete_batches_are_published_and_the_rest_is_filed(
    combee: Combee, traces: Path
) -> None:
    done = combee(*learn(traces, "store", "--max-calls", 10, "--on-budget", "publish"))
    assert done.code == 0, done.err[-2000:]
    assert (done.json["status"], done.json["version"]) == ("budget", 1)
    assert done.json["accounting"]["learned"] == 6
    assert done.json["accounting"]["deferred"] == 6
    assert "Finished in state Budget('budget: this run has used 10 of 10 calls" in done.err
    filed = entries(open_store(f"file://{traces.parent}/store"), "playbook")
    assert {entry.fate for entry in filed} == {"deferred"}
    again = combee(*learn(traces, "store"))
    assert (again.code, again.json["version"], sum(again.json["model_calls"].values())) == (0, 1, 0)


FINAL = {
    "401": ("failed", "the key was refused"),
    "402": ("failed", "no quota left"),
    "429,retry_after=5000": ("stopped", "try again after"),
}


@pytest.mark.parametrize("kind", FINAL)
def test_what_cannot_pass_ends_the_run_at_its_first_call(
    combee: Combee, server: SimulatedServer, traces: Path, kind: str
) -> None:
    status, says = FINAL[kind]
    server.set_faults(f"kind={kind}")
    where = ("--model", "openai/simulated/overload", "--api-base", server.url)
    done = combee(*learn(traces, "store", *where, "--concurrency", 1, "--max-concurrency", 1))
    assert done.code == 1
    assert server.stats()["total"] == 1, "one call, and none after it"
    assert done.json["status"] == status
    assert says in done.json["error"]["message"]


def test_a_fallback_learns_what_the_first_model_cannot_and_the_version_names_it(
    combee: Combee, server: SimulatedServer, traces: Path
) -> None:
    other = f"openai/simulated/overload@{server.url}"
    first = ("--model", "openai/simulated/dead", "--api-base", "http://127.0.0.1:9/v1")
    done = combee(*learn(traces, "store", *first, "--fallback-model", other))
    assert done.code == 0, done.err[-2000:]
    assert done.json["accounting"]["learned"] == 12
    assert "another model is asked in its place" in done.err
    version = Versions(open_store(f"file://{traces.parent}/store"), "playbook").latest()
    assert version is not None
    assert version.models == ("simulated/overload",)
