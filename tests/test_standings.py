"""Runs found by their key or by a flow run's id, and how each stands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from asking import memory
from run_records import items, request

from combee_core import history
from combee_core.adapters.standings import find_runs, flow_run_of, standing_of, with_caps
from combee_core.config import Budget, ModelSettings, RunSettings, Source
from combee_core.errors import UsageError
from combee_core.ports import Store
from combee_core.records import Batch, Cut, Plan, RunResult, Sizing, State
from combee_core.runs import Run, find_or_plan, part_of, run_of, runs_of
from combee_core.spent import Share, Spent, of_day, of_run, write_share

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
STAND_IN = ModelSettings(model="simulated/overload")


def planned(store: Store, source: Source | None = None, count: int = 5) -> Run:
    return find_or_plan(store, request(model=STAND_IN, source=source or Source()), items(count), (), 0)


def begun(store: Store) -> Run:
    """A run of five traces in batches of two, whose first batch is done."""
    run = planned(store)
    history.begin(run, run.plan(), "flow-1", "flow-1-1", NOON)
    run.begin_sizing(Sizing(total=5, batch_size=2))
    run.save_state(State(number=1, state={"sections": []}))
    return run


def test_a_run_is_found_by_its_key_and_by_its_flow_run() -> None:
    store = memory()
    run = begun(store)
    run.note_flow_run("flow-1")
    assert find_runs(store, run.key) == [run]
    assert find_runs(store, "flow-1") == [run]
    assert find_runs(store, "flow-2") == []
    assert flow_run_of(run) == "flow-1"
    with pytest.raises(UsageError, match="has no run"):
        find_runs(store, "0" * 20)


def test_a_flow_run_may_have_worked_on_several_days_and_on_the_backlog() -> None:
    store = memory()
    days = [Source(uris=("/t",), day=NOON.date().replace(day=day)) for day in (3, 2)]
    filed = Source(kind="backlog", uris=("memory://x/backlog/p#a",))
    runs = {part_of(source): planned(store, source) for source in (*days, filed)}
    for part, run in runs.items():
        run.note_flow_run("flow-1", part)
    second, third, of_the_backlog = runs[days[1].day], runs[days[0].day], runs["backlog"]
    assert runs_of(store, "flow-1") == [second, third, of_the_backlog]
    assert run_of(store, "flow-1", days[0].day) == third
    assert run_of(store, "flow-1", "backlog") == of_the_backlog
    assert run_of(store, "flow-2", "backlog") is None


def test_the_next_batch_and_what_comes_after_it_are_known() -> None:
    standing = standing_of(begun(memory()))
    assert (standing.number, standing.traces, standing.later) == (2, 2, 1)
    assert standing.reflections is None, "it has not begun"
    assert not standing.is_finished
    assert standing.seen.state == "dead"


def test_of_a_batch_that_has_begun_the_saved_answers_are_counted() -> None:
    store = memory()
    run = begun(store)
    run.start_batch(Batch(number=2))
    standing = standing_of(run)
    assert standing.reflections is not None
    assert (standing.reflections.of, standing.groups) == (0, standing.groups)


def test_a_finished_run_has_its_version_and_one_that_only_waits_for_publishing_no_batch() -> None:
    store = memory()
    run = begun(store)
    for number in (2, 3):
        run.save_state(State(number=number, state={"sections": []}))
    assert (standing_of(run).number, standing_of(run).later) == (0, 0)
    run.finish(RunResult(playbook="p", version=4, digest="d"))
    assert standing_of(run).version == 4


def test_of_a_run_that_a_cap_has_cut_no_batch_follows() -> None:
    store = memory()
    run = begun(store)
    run.end_early(Cut(batches=1, reason="the cap is reached"))
    assert (standing_of(run).number, standing_of(run).traces, standing_of(run).later) == (0, 0, 0)


def test_a_run_that_was_only_planned_has_all_of_it_before_it() -> None:
    store = memory()
    standing = standing_of(planned(store))
    assert (standing.seen.state, standing.later, standing.number) == ("planned", 5, 0)


def test_a_batch_size_that_is_still_measured_leaves_the_rest_for_later() -> None:
    store = memory()
    run = planned(store)
    run.begin_sizing(Sizing(total=5, profile=(1, 2)))
    for number in (1, 2):
        run.save_state(State(number=number, state={"sections": []}))
    standing = standing_of(run)
    assert (standing.number, standing.later) == (0, 2)


def test_the_plan_of_another_store_is_not_taken_for_one_here() -> None:
    here, there = memory(), memory()
    run = begun(there)
    assert isinstance(run.plan(), Plan)
    with pytest.raises(UsageError, match=here.uri):
        find_runs(here, run.key)


def test_the_caps_of_what_is_left_are_those_that_are_asked_for_now_beside_what_was_spent() -> None:
    store = memory()
    run = begun(store)
    own = Share(run=run.key, invocation="one", spent=Spent(calls=7, seconds=90))
    other = Share(run="b" * 20, invocation="two", spent=Spent(calls=5))
    write_share(store, f"{of_run(run.key)}one.json", own)
    for name, share in (("one", own), ("two", other)):
        write_share(store, f"{of_day(NOON.date())}{name}.json", share)
    settings = RunSettings(budget=Budget(calls=9), day_budget=Budget(calls=50), on_budget="publish")
    capped = with_caps(standing_of(run), run, settings, NOON.date())
    assert [(cap.option, cap.used, cap.most) for cap in capped.caps] == [
        ("--max-calls", 7, 9),
        ("--max-calls-per-day", 12, 50),
    ]
    assert capped.on_budget == "publish"
    assert with_caps(standing_of(run), run, RunSettings(), NOON.date()).caps == ()
    run.finish(RunResult(playbook="p", version=4, digest="d"))
    assert with_caps(standing_of(run), run, settings, NOON.date()).caps == ()
