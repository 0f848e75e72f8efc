"""Runs that a cap ends, as flows in this process: what is published, what they say, how a rerun goes on."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client

from combee_core.adapters.stores import open_store
from combee_core.backlog import entries
from combee_core.cli import main
from combee_core.config import Budget, Nights, RunRequest, RunSettings, Source
from combee_core.errors import BudgetSpent
from combee_core.records import RunResult
from combee_core.runs import run_of
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Versions
from flows.terminal import restart, start
from tasks.terminal import Outcome, request_in

pytestmark = pytest.mark.usefixtures("prefect_api")

DAY = date(2026, 3, 2)
TRACES, GROUPS = 12, 3
WHOLE = TRACES + GROUPS + 1
"""Calls of the whole run, in one batch."""


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, 0, DAY))
    return path


def begun(traces: Path, store: str = "store", calls: int | None = None, **settings: Any) -> Outcome:
    """A night of the twelve traces, in one batch unless told otherwise."""
    given = {"batch_size": TRACES, "merge": "paper", "budget": Budget(calls=calls), **settings}
    source = Source(uris=(str(traces),), day=DAY)
    own = RunSettings.model_validate(given)
    request = RunRequest(playbook="p", store=f"file://{traces.parent}/{store}", source=source, settings=own)
    return start("nightly", request, nights=Nights())


def asked(result: RunResult) -> int:
    return sum(result.model_calls.values())


def capped(calls: int, **more: Any) -> Any:
    return lambda settings: settings.model_copy(update={"budget": Budget(calls=calls), **more})


def waiting(traces: Path) -> set[str]:
    """The traces in the backlog."""
    return {entry.trace_id for entry in entries(open_store(f"file://{traces.parent}/store"), "p")}


def cited_and_read(traces: Path, result: RunResult) -> tuple[set[str], set[str]]:
    """The traces that the latest version cites, and those that a finished group of the first batch has read."""
    store = open_store(f"file://{traces.parent}/store")
    version, run = Versions(store, "p").latest(), run_of(store, result.flow_run_id)
    state = run.state(1) if run else None
    assert version
    assert state
    bullets = [bullet for section in version.state["sections"] for bullet in section["bullets"]]
    cited = {trace for bullet in bullets for trace in bullet["sources"]}
    return cited, {fate.trace_id for fate in state.fates if fate.fate == "learned"}


def test_of_a_single_batch_the_finished_groups_are_published_and_the_rest_is_learned_later(traces: Path) -> None:
    cut, error = begun(traces, calls=TRACES + 1, on_budget="publish")
    assert error is None
    assert (cut.status, cut.version, asked(cut)) == ("budget", 1, TRACES + 1)
    assert f"13 of 13 calls (--max-calls); published: 1 of {GROUPS} groups of batch 1; the other traces" in cut.note
    cited, read = cited_and_read(traces, cut)
    assert cited
    assert cited <= read, "nothing is published that no finished group has read"
    left = waiting(traces)
    assert len(read) + len(left) == TRACES
    assert (cut.accounting.learned, cut.accounting.deferred) == (len(read), len(left))
    assert left

    again, error = restart(cut.flow_run_id, capped(1000))
    assert (error, again.status, again.version, asked(again)) == (None, "budget", 1, 0)
    later, error = begun(traces)
    assert (error, later.status, later.version) == (None, "done", 2)
    assert later.accounting.learned == len(left)
    assert not waiting(traces)


def test_a_rerun_with_a_higher_cap_ends_as_if_there_had_been_none_and_pays_for_nothing_twice(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free, _ = begun(traces, "undisturbed")
    assert asked(free) == WHOLE
    held, error = begun(traces, calls=TRACES + 2, day_budget=Budget(calls=50))
    assert isinstance(error, BudgetSpent)
    assert (held.status, held.version, asked(held)) == ("budget", None, TRACES + 2)

    explain = ("rerun", held.flow_run_id, "--explain", "--store", f"file://{traces.parent}/store")
    capsys.readouterr()
    assert main([*explain]) == 0
    said = capsys.readouterr().out
    assert "caps: 14 of 14 calls (--max-calls) used; 14 of 50 calls (--max-calls-per-day) used; at one, nothing" in said
    assert main([*explain, "--max-calls", "40", "--on-budget", "publish"]) == 0
    said = capsys.readouterr().out
    assert "14 of 40 calls (--max-calls) used" in said
    assert "what is complete is published (--on-budget publish)" in said

    same, error = restart(held.flow_run_id, capped(TRACES + GROUPS))
    assert isinstance(error, BudgetSpent), "a cap is of all attempts together"
    assert asked(same) == 1
    with get_client(sync_client=True) as client:
        recorded = request_in(client.read_flow_run(UUID(held.flow_run_id)).parameters)
    assert recorded.settings.budget == Budget(calls=TRACES + GROUPS), "every later attempt has it"
    done, error = restart(held.flow_run_id, capped(1000))
    assert error is None
    assert (done.status, done.digest, done.flow_run_id) == ("done", free.digest, held.flow_run_id)
    assert asked(done) == 1


def test_a_held_run_can_be_told_to_publish_what_it_has_and_needs_no_call_for_it(traces: Path) -> None:
    held, _ = begun(traces, calls=TRACES)
    still, error = restart(held.flow_run_id, capped(TRACES, on_budget="publish"))
    assert isinstance(error, BudgetSpent), "before a group is done there is nothing to publish"
    assert still.version is None
    begun(traces, calls=TRACES + GROUPS)
    done, error = restart(held.flow_run_id, capped(TRACES + GROUPS, on_budget="publish"))
    assert error is None
    assert (done.status, done.version, asked(done)) == ("budget", 1, 0)
    assert done.note.endswith(f"published: {GROUPS} of {GROUPS} groups of batch 1"), "merged in code"
    assert (done.accounting.learned, done.accounting.deferred) == (TRACES, 0)


def test_of_several_batches_the_complete_ones_and_the_finished_groups_of_the_next_are_published(traces: Path) -> None:
    batch, reduced = 6, 3  # two groups and their merge
    cut, error = begun(traces, calls=batch + reduced + batch + 1, on_budget="publish", batch_size=batch, copies=1)
    assert error is None
    assert (cut.status, cut.version) == ("budget", 1)
    assert "published: 1 complete batch and 1 of 2 groups of batch 2; the other traces are in the backlog" in cut.note
    assert (cut.accounting.learned, cut.accounting.deferred) == (9, 3)
