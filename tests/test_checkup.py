"""A closer look at a store: pace, clock, chains, backlog, days, dead runs."""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, timedelta

import pytest
from aged_store import NOW, Calendar
from run_records import learned, plan, request

from combee_core import checkup
from combee_core.adapters.memory_store import MemoryStore
from combee_core.backlog import file
from combee_core.errors import CombeeError, StoreError
from combee_core.ports import Store
from combee_core.records import RunResult, TraceFate
from combee_core.runs import Run

TODAY = NOW.date()


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex)


def test_a_round_trip_says_how_long_each_step_takes_and_leaves_nothing(store: Store) -> None:
    ticks = iter(n * n / 1000 for n in range(8))
    said = checkup.round_trip(store, lambda: next(ticks))
    assert said == f"{store.uri}: write 1 ms, read 5 ms, list 9 ms, delete 13 ms"
    assert store.list("") == []


class Forgetful(MemoryStore):
    """Lists nothing."""

    def list(self, prefix: str) -> list[str]:
        return []


def test_a_store_that_does_not_list_what_was_written_is_refused() -> None:
    with pytest.raises(StoreError, match="does not agree"):
        checkup.round_trip(Forgetful(uuid.uuid4().hex), lambda: 0.0)


@pytest.mark.parametrize("ahead", [-29, 0, 29])
def test_clocks_that_agree_well_enough_are_fine(ahead: int) -> None:
    store = MemoryStore(uuid.uuid4().hex, lambda: NOW + timedelta(seconds=ahead))
    assert "agrees within" in checkup.skew(store, lambda: NOW)
    assert store.list("") == []


@pytest.mark.parametrize(("ahead", "word"), [(-300, "299 s behind"), (300, "300 s ahead of")])
def test_a_clock_that_would_make_live_runs_look_dead_is_named(ahead: int, word: str) -> None:
    store = MemoryStore(uuid.uuid4().hex, lambda: NOW + timedelta(seconds=ahead))
    with pytest.raises(CombeeError, match=word):
        checkup.skew(store, lambda: NOW)
    assert store.list("") == []


def test_a_real_store_has_a_clock_that_can_be_read(store: Store) -> None:
    assert "agrees within" in checkup.skew(store, lambda: datetime.now(UTC))


def test_chains_are_followed_to_the_first_version() -> None:
    its = Calendar()
    assert checkup.chains(its.store) == "no playbook yet"
    its.night(2, "a" * 20, "one")
    its.night(1, "b" * 20, "two")
    assert checkup.chains(its.store) == "every hash right (p: 2 versions)"


def test_a_version_that_was_changed_by_hand_is_found_though_it_is_not_the_latest() -> None:
    its = Calendar()
    its.night(2, "a" * 20, "one")
    its.night(1, "b" * 20, "two")
    (key,) = [key for key in its.keys if "/versions/00000001-" in key]
    blob = its.store.read(key)
    assert blob is not None
    its.store.replace(key, blob.data.replace(b"one", b"oen"), blob.tag)
    with pytest.raises(StoreError, match="does not have the hash"):
        checkup.chains(its.store)


def test_the_backlog_is_counted_by_playbook_and_fate() -> None:
    store = memory()
    assert checkup.filed(store) == "empty"
    fates = [TraceFate(trace_id=f"t{n:02d}", fate="failed" if n < 3 else "refused") for n in (1, 2, 3)]
    file(store, plan(3), fates)
    assert checkup.filed(store) == "p: 2 failed, 1 refused"
    file(store, plan(3), learned(1, 2, 3))
    assert checkup.filed(store) == "empty"
    other = plan(1, request=request(playbook="q"))
    file(store, other, [TraceFate(trace_id="t01", fate="failed")])
    assert checkup.filed(store) == "q: 1 failed", "what is empty again is not named"


def days(store: Store, *marked: date) -> None:
    for day in marked:
        store.create(f"days/p/source/{day}.json", b"{}")


def test_days_of_the_last_week_without_a_marker_are_named() -> None:
    store = memory()
    week = [TODAY - timedelta(days=ago) for ago in range(1, 8)]
    days(store, *week)
    assert checkup.marked(store, "p", "UTC", NOW) == "all marked"
    store.delete(f"days/p/source/{week[2]}.json")
    assert "no marker for 2026-11-27 (no traces, or not learned)" in checkup.marked(store, "p", "UTC", NOW)


@pytest.mark.parametrize(
    ("zone", "at", "last"),
    [
        ("UTC", "2026-12-01T23:30", "2026-11-30"),
        ("Asia/Tokyo", "2026-12-01T14:59", "2026-11-30"),
        ("Asia/Tokyo", "2026-12-01T15:00", "2026-12-01"),
        ("America/Los_Angeles", "2026-12-01T07:59", "2026-11-29"),
        ("America/Los_Angeles", "2026-12-01T08:00", "2026-11-30"),
    ],
)
def test_the_last_day_is_the_one_that_is_over_in_the_zone(zone: str, at: str, last: str) -> None:
    store, end = memory(), date.fromisoformat(last)
    days(store, *(end - timedelta(days=ago) for ago in range(7)))
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert checkup.marked(store, "p", zone, now) == "all marked"
    store.delete(f"days/p/source/{last}.json")
    assert f"no marker for {last} " in checkup.marked(store, "p", zone, now)


def test_a_week_without_any_marker_is_a_schedule_that_is_off() -> None:
    store = memory()
    days(store, TODAY - timedelta(days=8), TODAY)
    with pytest.raises(CombeeError, match="schedule"):
        checkup.marked(store, "p", "UTC", NOW)


def test_a_run_that_is_shown_as_running_and_has_no_owner_is_named_with_the_way_out() -> None:
    store = memory()
    for name in ("alive", "dead"):
        Run(store, f"run-{name}").note_flow_run(name)
    with store.lease("runs/run-alive/owner", "flow run alive"):
        assert checkup.orphans(store, ["alive", "of-another-store"]) == "2 running, none of them abandoned"
        with pytest.raises(CombeeError, match=r"combee rerun dead$"):
            checkup.orphans(store, ["alive", "dead"])
    assert checkup.orphans(store, []) == "no run is under way"
    assert [key for key in store.list("runs/") if key.endswith("owner")] == []


class Watched(MemoryStore):
    """A store whose leases are nobody's to take."""

    def lease(self, key: str, holder: str) -> AbstractContextManager[None]:
        raise AssertionError(f"{holder} takes {key} to look at it")


def test_who_works_on_a_run_is_looked_up_and_nothing_is_taken() -> None:
    store = Watched(uuid.uuid4().hex)
    Run(store, "run").note_flow_run("dead")
    with pytest.raises(CombeeError, match=r"combee rerun dead$"):
        checkup.orphans(store, ["dead"])


def test_a_flow_run_of_several_days_is_judged_by_those_that_are_not_finished() -> None:
    store, days = memory(), [TODAY - timedelta(days=ago) for ago in (2, 1)]
    first, second = Run(store, "first"), Run(store, "second")
    for run, day in zip((first, second), days, strict=True):
        run.note_flow_run("night", day)
    second.finish(RunResult(playbook="p", version=1, digest="d"))
    with pytest.raises(CombeeError, match=r"combee rerun night$"):
        checkup.orphans(store, ["night"])
    with store.lease(first.path("owner"), "flow run night"):
        assert checkup.orphans(store, ["night"]) == "1 running, none of them abandoned"
    first.finish(RunResult(playbook="p", version=1, digest="d"))
    assert checkup.orphans(store, ["night"]) == "1 running, none of them abandoned", "it is between two days"
