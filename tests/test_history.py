"""What a store knows of its runs: newest first, each as its last attempt left it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from asking import memory
from run_records import items, request

from combee_core import history
from combee_core.config import Source
from combee_core.errors import BudgetSpent, ModelAway, RunError, RunHeld, RunStopped
from combee_core.history import Attempt, recent
from combee_core.outcome import status_of
from combee_core.ports import Store
from combee_core.records import Failure, Sizing, State
from combee_core.runs import Run, find_or_plan

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def planned(store: Store, playbook: str = "p", seed: int = 0, count: int = 4) -> Run:
    run = find_or_plan(store, request(playbook=playbook, seed=seed), items(count), (), 0)
    run.begin_sizing(Sizing(total=count, batch_size=2))
    return run


def begun(run: Run, minutes: int = 0, flow_run: str = "flow-1") -> Attempt:
    return history.begin(run, run.plan(), flow_run, f"{flow_run}-1", NOON + timedelta(minutes=minutes))


def test_a_run_is_listed_with_what_failed_and_how_far_it_came() -> None:
    store = memory()
    run = planned(store)
    attempt = begun(run)
    run.save_state(State(number=1, state={}))
    failure = Failure(stage="curate", item="curate-g03", message="no answer")
    history.end(run, attempt, "failed", NOON + timedelta(minutes=5), failure)
    (seen,) = recent(store)
    assert (seen.run, seen.state, seen.playbook, seen.what, seen.traces) == (run.key, "failed", "p", "/traces", 4)
    assert (seen.batches_done, seen.batches_planned) == (1, 2)
    assert (seen.failure, seen.flow_run_id) == (failure, "flow-1")
    assert seen.began == NOON


def test_one_without_an_end_is_running_while_its_process_lives_and_dead_afterwards(store: Store) -> None:
    run = planned(store)
    with store.lease(run.path("owner"), "flow run flow-1"):
        begun(run)
        run.save_state(State(number=1, state={}))
        (alive,) = recent(store)
    (dead,) = recent(store)
    assert (alive.state, alive.batches_done) == ("running", 1)
    assert (dead.state, dead.batches_done, dead.batches_planned) == ("dead", 1, 2)


def test_who_holds_a_key_can_be_seen_without_taking_it(store: Store) -> None:
    assert store.holder("runs/a/owner") is None
    with store.lease("runs/a/owner", "flow run of somebody"):
        assert store.holder("runs/a/owner") == "flow run of somebody"
        with pytest.raises(RunHeld, match="somebody"), store.lease("runs/a/owner", "another"):
            pass
    assert store.holder("runs/a/owner") is None
    with store.lease("runs/a/owner", "the next"):
        assert store.holder("runs/a/owner") == "the next"


def test_a_run_that_was_attempted_twice_is_listed_once_in_the_place_of_the_later_attempt() -> None:
    store = memory()
    first, second = planned(store), planned(store, seed=1)
    history.end(first, begun(first), "failed", NOON)
    history.end(second, begun(second, 1), "done", NOON)
    history.end(first, begun(first, 2, "flow-2"), "done", NOON)
    assert [(seen.run, seen.state, seen.flow_run_id) for seen in recent(store)] == [
        (first.key, "done", "flow-2"),
        (second.key, "done", "flow-1"),
    ]


def test_a_new_attempt_has_no_end_although_the_one_before_had() -> None:
    store = memory()
    run = planned(store)
    history.end(run, begun(run), "failed", NOON)
    begun(run, 1)
    assert recent(store)[0].state == "dead"


def test_a_playbook_and_a_number_can_be_asked_for() -> None:
    store = memory()
    for number in range(5):
        begun(planned(store, seed=number), number)
    begun(planned(store, "q"), 9)
    assert [seen.playbook for seen in recent(store, limit=2)] == ["q", "p"]
    assert len(recent(store, "p")) == 5
    assert [seen.began for seen in recent(store, "p", 2)] == [NOON + timedelta(minutes=n) for n in (4, 3)]
    assert recent(store, "nobody") == []


def test_runs_whose_records_are_gone_take_no_place_among_those_asked_for() -> None:
    store = memory()
    for number in range(3):
        begun(planned(store, seed=number), number)
    for number in range(10, 15):
        store.create(f"history/p/{NOON + timedelta(minutes=number):%Y%m%dT%H%M%S%f}-{number:020x}", b"")
    assert [seen.began for seen in recent(store, limit=2)] == [NOON + timedelta(minutes=n) for n in (2, 1)]
    assert len(recent(store, limit=9)) == len(recent(store)) == 3
    assert recent(store, limit=0) == []


def test_of_a_thousand_runs_only_those_that_are_shown_are_read() -> None:
    class Counted:
        def __init__(self, inner: Store) -> None:
            self.inner, self.reads = inner, 0

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def read(self, key: str) -> object:
            self.reads += 1
            return self.inner.read(key)

    store = memory()
    run = planned(store)
    history.end(run, begun(run, 2000), "done", NOON)
    for number in range(1000):
        store.create(f"history/p/{NOON + timedelta(minutes=number):%Y%m%dT%H%M%S%f}-{number:020x}", b"")
    counted = Counted(store)
    (seen,) = recent(counted, limit=1)  # type: ignore[arg-type]
    assert seen.run == run.key
    assert counted.reads == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RunError("x"), "failed"),
        (ValueError(), "failed"),
        (RunStopped("x"), "stopped"),
        (ModelAway("try again tomorrow"), "stopped"),
        (BudgetSpent("x"), "budget"),
        (KeyboardInterrupt(), "stopped"),
    ],
)
def test_what_was_stopped_on_purpose_has_not_failed(error: BaseException, status: str) -> None:
    assert status_of(error) == status


def test_the_backlog_is_called_by_its_name_and_a_day_by_its_date() -> None:
    store = memory()
    source = Source(kind="backlog", uris=("memory://x/backlog/p#a,b",))
    filed = find_or_plan(store, request(source=source), items(1), (), 0)
    day = find_or_plan(store, request(source=Source(uris=("/traces",), day=NOON.date())), items(1), (), 0)
    assert history.what_of(filed.plan()) == "backlog"
    assert history.what_of(day.plan()) == "2026-03-02"
