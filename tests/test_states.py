"""States that are read one at a time."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.errors import StoreError
from combee_core.records import State
from combee_core.states import States


def state(number: int) -> State:
    return State(number=number, state={})


def numbers(states: States) -> list[int]:
    return [one.number for one in states]


def test_states_are_counted_from_one_and_come_in_order() -> None:
    made = States(state, 3)
    assert numbers(made) == numbers(made) == [1, 2, 3]
    assert (len(made), made[0].number, made[-1].number) == (3, 1, 3)
    assert [one.number for one in reversed(made)] == [3, 2, 1]
    with pytest.raises(IndexError):
        made[3]


def test_a_run_without_a_finished_batch_has_none() -> None:
    made = States(state, 0)
    assert (len(made), numbers(made)) == (0, [])
    assert not made


def test_nothing_is_read_before_it_is_asked_for() -> None:
    asked: list[int] = []

    def load(number: int) -> State:
        asked.append(number)
        return state(number)

    made = States(load, 100)
    assert len(made) == 100
    assert asked == []
    assert made[-1].number == 100
    assert next(iter(made)).number == 1
    assert asked == [100, 1]


def test_no_more_than_one_is_held_while_they_are_gone_through() -> None:
    alive: list[weakref.ref[State]] = []

    def load(number: int) -> State:
        made = state(number)
        alive.append(weakref.ref(made))
        return made

    def held() -> Iterator[int]:
        for _ in States(load, 20):
            gc.collect()
            yield sum(ref() is not None for ref in alive)

    # The loop variable still holds the one before while the next is read.
    assert max(held()) <= 2


def test_a_state_that_is_gone_is_an_error_that_names_it() -> None:
    made = States(lambda number: state(number) if number < 3 else None, 3)
    with pytest.raises(StoreError, match="after batch 3 is gone"):
        numbers(made)


@given(st.integers(0, 8), st.slices(8))
def test_a_part_is_what_a_list_would_give(count: int, part: slice) -> None:
    everything = [state(number) for number in range(1, count + 1)]
    assert States(state, count)[part] == everything[part]
