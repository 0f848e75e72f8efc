"""What a run's states add up to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_records import learned, receipt

from combee_core.records import State
from combee_core.states import States
from combee_core.tally import MOST_SET_ASIDE, MOST_SHOWN, tally
from combee_core.types import Conflict, OperationFate, SetAside, Survival, Update


def state(number: int = 1, **given: Any) -> State:
    return State(number=number, state={}, **given)


def aside(*numbers: int) -> tuple[SetAside, ...]:
    return tuple(SetAside(what=f"operation {n}", reason="gone") for n in numbers)


def level(name: str, before: int, after: int, estimated: bool = False) -> Survival:
    return Survival(level=name, before=before, after=after, known=2 * before, estimated=estimated)


def test_no_state_adds_up_to_nothing() -> None:
    made = tally([])
    assert (made.batches, made.fates, made.groups, made.calls, made.survival) == (0, (), (), 0, ())


def test_fates_groups_calls_and_models_of_all_batches_are_there() -> None:
    first = state(1, fates=learned(1, 2), groups=2, calls=3, receipts=(receipt(), receipt(model="n")))
    second = state(2, fates=learned(3), groups=1, calls=1, receipts=(receipt(),))
    made = tally(iter([first, second]))
    assert [fate.trace_id for fate in made.fates] == ["t01", "t02", "t03"]
    assert (made.batches, made.groups, made.single, made.calls) == (2, (2, 1), (2,), 4)
    assert made.models == {"m", "n"}


def test_copies_that_met_are_told_on_average() -> None:
    assert tally([state(1, copies_met=0.1), state(2, copies_met=0.2)]).copies_met == pytest.approx(0.15)
    assert tally([]).copies_met == 0


def of_batch(number: int, conflicts: int = 0, dropped: int = 0, kept: int = 0) -> State:
    fates = [("dropped", n) for n in range(dropped)] + [("kept", n) for n in range(kept)]
    update = Update(
        conflicts=tuple(Conflict(texts=(f"{number}-{n}", "b")) for n in range(conflicts)),
        fates=tuple(OperationFate(text=f"{number}-{n}", origin="g", fate=fate) for fate, n in fates),
    )
    return state(number, update=update)


def test_the_first_contradictions_and_dropped_operations_are_named_and_all_are_counted() -> None:
    made = tally([of_batch(n, conflicts=40, dropped=50, kept=100) for n in (1, 2, 3)])
    assert [conflict.texts[0] for conflict in made.conflicts] == [f"1-{n}" for n in range(40)] + [
        f"2-{n}" for n in range(MOST_SHOWN - 40)
    ]
    assert (made.more_conflicts, made.merged) == (120 - MOST_SHOWN, {"dropped": 150, "kept": 300})
    assert [fate.text for fate in made.dropped][-1] == f"2-{MOST_SHOWN - 51}"
    assert {fate.fate for fate in made.dropped} == {"dropped"}


@given(st.lists(st.tuples(*[st.integers(0, 2 * MOST_SHOWN)] * 3), max_size=4))
def test_what_is_held_does_not_grow_with_what_there_was(batches: list[tuple[int, int, int]]) -> None:
    made = tally([of_batch(n, *of) for n, of in enumerate(batches, start=1)])
    conflicts, dropped, kept = (sum(of[at] for of in batches) for at in range(3))
    assert (len(made.conflicts), made.more_conflicts) == (min(conflicts, MOST_SHOWN), max(0, conflicts - MOST_SHOWN))
    assert len(made.dropped) == min(dropped, MOST_SHOWN)
    assert (made.merged.get("dropped", 0), made.merged.get("kept", 0)) == (dropped, kept)


def test_every_state_is_read_once() -> None:
    read: list[int] = []

    def load(number: int) -> State:
        read.append(number)
        return of_batch(number, 1, 1, 1)

    tally(States(load, 5))
    assert read == [1, 2, 3, 4, 5]


# what was set aside


def test_what_was_set_aside_twice_is_named_once() -> None:
    made = tally([state(1, set_aside=aside(1, 2)), state(2, set_aside=aside(2, 3))], aside(1, 4))
    assert made.set_aside == aside(1, 2, 3, 4)
    assert made.more_set_aside == 0


def test_beyond_a_thousand_they_are_counted_and_not_named() -> None:
    most = MOST_SET_ASIDE
    states = [state(n, set_aside=aside(*range(n * 400, (n + 1) * 400))) for n in range(3)]
    made = tally(states, aside(0, 5000))
    assert made.set_aside == aside(*range(most))
    assert made.more_set_aside == 3 * 400 + 1 - most


@given(st.lists(st.lists(st.integers(0, 2 * MOST_SET_ASIDE), max_size=3), max_size=4))
def test_nothing_is_lost_between_the_named_and_the_counted(drawn: list[list[int]]) -> None:
    made = tally([state(n, set_aside=aside(*numbers)) for n, numbers in enumerate(drawn)])
    assert set(made.set_aside) == set(aside(*(n for numbers in drawn for n in numbers)))
    assert made.more_set_aside == 0


# survival


def test_the_first_and_the_last_level_are_summed_over_the_batches() -> None:
    states = [
        state(1, survival=(level("curate", 10, 8), level("round 1", 10, 7), level("merge", 10, 6))),
        state(2, survival=(level("curate", 5, 5), level("merge", 5, 4))),
    ]
    assert tally(states).survival == (level("curate", 15, 13), level("merge", 15, 10))


def test_where_there_is_one_level_it_is_told_once() -> None:
    assert tally([state(1, survival=(level("curate", 3, 2),)), state(2)]).survival == (level("curate", 3, 2),)


@pytest.mark.parametrize("estimated", [[True, False], [False, True]])
def test_a_sum_with_an_estimate_in_it_is_an_estimate(estimated: list[bool]) -> None:
    states = [state(n, survival=(level("curate", 1, 1, guess),)) for n, guess in enumerate(estimated)]
    assert tally(states).survival == (level("curate", 2, 2, estimated=True),)


PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(st.lists(PAIRS, min_size=2, max_size=4) | st.just([]), max_size=5))
def test_sums_are_those_of_the_first_and_last_entries(drawn: list[list[tuple[int, int]]]) -> None:
    names = ["curate", "merge 1", "merge 2"]
    survivals = [
        tuple(level(name, *pair) for name, pair in zip([*names[: len(batch) - 1], "merge"], batch, strict=False))
        for batch in drawn
    ]
    made = tally([state(n, survival=survival) for n, survival in enumerate(survivals)]).survival
    filled = [batch for batch in drawn if batch]
    expected = [("curate", filled, 0), ("merge", filled, -1)] if filled else []
    assert [(one.level, one.before, one.after) for one in made] == [
        (name, sum(b[at][0] for b in batches), sum(b[at][1] for b in batches)) for name, batches, at in expected
    ]
