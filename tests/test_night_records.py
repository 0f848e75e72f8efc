"""What a night or a backfill writes down of itself, and its days' results as one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import DAY, request

from combee_core.config import STAGES, DateRange, Nights, RunSettings, Source
from combee_core.nights import (
    Night,
    Undertaking,
    accomplish,
    day_result,
    night_days,
    night_of,
    note_day,
    noted_days,
    summed,
    undertake,
)
from combee_core.ports import Store
from combee_core.records import Accounting, Amounts, DayResult, Failure, RunResult, TraceFate, together
from combee_core.types import Unread

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
WEEK = DateRange(first=MONDAY, last=date(2026, 3, 8))


def result(day: int = 1, **more: Any) -> RunResult:
    """A day's result: two traces, three calls, twenty tokens, two cents."""
    calls = {**dict.fromkeys(STAGES, 0), "reflect": 2, "curate": 1}
    accounting = Accounting.model_validate({"in": 2, "learned": 1, "failed": 1})
    fates = (TraceFate(trace_id=f"a{day}", fate="learned"), TraceFate(trace_id=f"b{day}", fate="failed", reason="no"))
    given = {"version": day, "digest": f"d{day}", "run": f"run-{day}", "accounting": accounting, "fates": fates}
    spent = {"model_calls": calls, "tokens": Amounts(this_run=10, total=20), "cost": Amounts(this_run=0.01, total=0.02)}
    return RunResult.model_validate({"playbook": "p", **given, **spent, **more})


@pytest.mark.parametrize(
    ("timezone", "start", "own"),
    [
        ("UTC", "2026-03-02T03:30", MONDAY - timedelta(days=1)),
        ("America/New_York", "2026-03-09T07:30", date(2026, 3, 8)),  # the day of 23 hours is over
        ("America/New_York", "2026-03-09T03:30", date(2026, 3, 7)),  # it is not
        ("America/New_York", "2026-11-02T04:30", date(2026, 10, 31)),  # the last of 25 hours
        ("America/New_York", "2026-11-02T05:30", date(2026, 11, 1)),
        ("Asia/Tokyo", "2026-03-08T18:30", date(2026, 3, 8)),
        ("Asia/Tokyo", "2026-03-08T14:30", date(2026, 3, 7)),
    ],
)
def test_a_night_is_of_the_local_day_before_its_scheduled_start(timezone: str, start: str, own: date) -> None:
    at = datetime.fromisoformat(start).replace(tzinfo=UTC)
    source = Source(uris=("/traces",), timezone=timezone)
    assert night_days(source, Nights(lookback=0), at) == Night(days=(own,), own=own)
    before = night_days(source, Nights(lookback=2), at)
    assert before.days == (own - timedelta(days=2), own - timedelta(days=1), own)
    named = night_days(source, Nights(lookback=2, missed="skip"), at)
    assert (named.days, named.named) == ((own,), before.days[:2])


def test_a_night_with_a_day_is_of_that_day_alone() -> None:
    assert night_days(DAY, Nights(), datetime.now(UTC)) == Night(days=(DAY.day,), own=DAY.day)


def test_a_flow_run_goes_on_with_the_days_that_it_first_chose(store: Store) -> None:
    first = night_of(store, "f", lambda: Night(days=(MONDAY,), own=MONDAY))
    assert night_of(store, "f", lambda: Night(days=(TUESDAY,), own=TUESDAY)) == first
    assert night_of(store, "g", lambda: Night(days=(TUESDAY,), own=TUESDAY)).own == TUESDAY


def test_days_are_noted_in_their_order_and_the_newest_note_stands(store: Store) -> None:
    assert noted_days(store, "f") == ()
    note_day(store, "f", DayResult(day=TUESDAY, happened="learned", traces=3))
    note_day(store, "f", DayResult(day=MONDAY, happened="failed", note="no answer"))
    note_day(store, "f", DayResult(day=MONDAY, happened="learned", traces=5))
    note_day(store, "g", DayResult(day=MONDAY, happened="no traces"))
    assert [(line.day, line.traces) for line in noted_days(store, "f")] == [(MONDAY, 5), (TUESDAY, 3)]


# undertakings


def test_the_same_backfill_goes_on_with_its_undertaking_until_it_has_ended() -> None:
    store, asked = memory(), request(source=DAY)
    first = undertake(store, asked, WEEK, force=True, base=4)
    assert first == Undertaking(name=first.name, base=4)
    assert undertake(store, asked, WEEK, force=True, base=9) == first
    accomplish(store, first.name)
    accomplish(store, first.name)
    second = undertake(store, asked, WEEK, force=True, base=9)
    assert second.base == 9
    assert second.name != first.name


@pytest.mark.parametrize(
    "other",
    [
        {"days": DateRange(first=MONDAY, last=TUESDAY)},
        {"force": False},
        {"base": None},
        {"asked": request(source=DAY, seed=9)},
        {"asked": request(source=DAY, playbook="q")},
        {"asked": request(source=DAY.model_copy(update={"timezone": "Asia/Tokyo"}))},
    ],
)
def test_another_backfill_is_another_undertaking(other: dict[str, Any]) -> None:
    store, usual = memory(), {"asked": request(source=DAY), "days": WEEK, "force": True, "base": 4}

    def name(asked: Any, days: DateRange, force: bool, base: int | None) -> str:
        return undertake(store, asked, days, force=force, base=base).name

    assert name(**{**usual, **other}) != name(**usual)


def test_place_and_patience_do_not_make_it_another_undertaking() -> None:
    store = memory()
    here, there = request(source=DAY), request(source=DAY, shard_size=3, dask="tcp://x:1")
    assert here.settings != there.settings
    assert isinstance(there.settings, RunSettings)
    assert undertake(store, here, WEEK, force=True, base=None) == undertake(store, there, WEEK, force=True, base=None)


# results


def test_a_days_line_says_what_happened_to_how_many_traces_and_at_what_price() -> None:
    line = day_result(MONDAY, "supplement", result(note="single group"))
    assert line == DayResult(
        day=MONDAY, happened="supplement", traces=2, version=1, run="run-1", model_calls=3, note="single group"
    )
    assert day_result(MONDAY, "learned", result(accounting=Accounting())).happened == "no traces"


def test_several_days_add_up_and_the_last_one_says_where_the_playbook_stands() -> None:
    one, two = result(1), result(2)
    lines = (DayResult(day=MONDAY, happened="learned"), DayResult(day=TUESDAY, happened="learned"))
    made = summed([one, two], lines, two)
    assert (made.version, made.digest, made.days) == (2, "d2", lines)
    assert made.accounting == Accounting.model_validate({"in": 4, "learned": 2, "failed": 2})
    assert made.model_calls == {"rollout": 0, "reflect": 4, "curate": 2, "merge": 0}
    assert (made.tokens, made.cost.total) == (Amounts(this_run=20, total=40), pytest.approx(0.04))
    assert [fate.trace_id for fate in made.fates] == ["b1", "b2"], "what was learned is not listed"


def test_days_of_which_one_learned_nothing_have_failed_together_unless_a_cap_ended_one() -> None:
    barren = result(2, status="failed", error=Failure(stage="learn", item="t1", message="nothing was learned"))
    last = result(3)
    assert summed([result(1), barren], [], last).status == "failed"
    assert summed([result(1, status="budget", note="cut"), barren], [], last).status == "budget"
    assert summed([result(1)], [], last).status == "done"


def test_no_day_at_all_adds_up_to_nothing() -> None:
    made = summed([], (), result(3))
    assert (made.version, made.accounting.total, sum(made.model_calls.values())) == (3, 0, 0)
    assert made.tokens == Amounts(this_run=0, total=0)


def test_an_unknown_cost_of_one_day_makes_the_sum_at_least_and_of_all_days_unknown() -> None:
    unknown = result(2, cost=Amounts(this_run=None, total=None))
    some = summed([result(1), unknown], (), unknown).cost
    assert (some.total, some.at_least) == (0.02, True)
    assert summed([unknown, unknown], (), unknown).cost.total is None
    assert summed([result(1, tokens=Amounts(this_run=1, total=1, at_least=True))], (), unknown).tokens.at_least


def test_of_nothing_but_unknown_costs_nothing_is_known_and_not_even_at_least() -> None:
    unknown = Amounts(this_run=None, total=None)
    assert together([unknown, unknown]) == unknown
    assert together([Amounts(this_run=0, total=None), unknown]) == Amounts(this_run=0, total=None, at_least=True)
    assert together([]) == Amounts()


AMOUNTS = st.builds(
    Amounts,
    this_run=st.none() | st.integers(0, 9),
    total=st.none() | st.integers(0, 9),
    at_least=st.booleans(),
)


@given(st.lists(AMOUNTS, min_size=1, max_size=4), st.lists(AMOUNTS, min_size=1, max_size=4))
def test_amounts_add_up_to_the_same_in_any_order_and_part_by_part(some: list[Amounts], more: list[Amounts]) -> None:
    whole = together([*some, *more])
    assert whole == together([*more, *some]) == together([together(some), together(more)])
    assert together(some[:1]) == some[0]


def test_a_file_that_every_day_left_out_is_named_once() -> None:
    junk = (Unread(where="junk.png", reason="unknown format"),)
    made = summed([result(1, left_out=junk), result(2, left_out=junk)], (), result(2))
    assert made.left_out == junk
