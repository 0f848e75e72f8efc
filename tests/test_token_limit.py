"""The batch size at which the paper's groups stop fitting into a call."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_records import learned, receipt

from combee_core.calls import Usage
from combee_core.config import RunSettings
from combee_core.records import State
from combee_core.token_limit import token_limit

BASE, EACH = 1000, 300


def state(number: int, n: int, *, base: int = BASE, each: int = EACH, copies: int = 2) -> State:
    """A batch of `n` insights in ⌊√n⌋ groups, each call with `base` tokens and `each` for an entry."""
    groups = math.isqrt(n)
    usage = Usage(input_tokens=round(base + each * copies * n / groups))
    calls = tuple(receipt(f"curate-g{g:02d}", stage="curate", usage=usage) for g in range(groups))
    return State(number=number, state={}, fates=learned(*range(n)), receipts=calls, groups=groups)


PAPER = RunSettings(grouping="paper")


def test_the_limit_is_where_two_copies_of_root_n_entries_fill_the_call() -> None:
    measured = [state(1, 16), state(2, 64)]
    assert token_limit(measured, PAPER, BASE + EACH * 40) == pytest.approx(400, abs=2)
    assert token_limit(measured, RunSettings(), BASE + EACH * 12) == pytest.approx(36, abs=2)


def test_beyond_a_hundred_auto_makes_bounded_groups_which_do_not_grow() -> None:
    assert token_limit([state(1, 16), state(2, 64)], RunSettings(), BASE + EACH * 40) is None


def test_a_single_group_was_dealt_no_copies() -> None:
    three, many = state(1, 3, copies=1), state(2, 64)
    assert token_limit([three, many], PAPER, BASE + EACH * 40) == pytest.approx(400, abs=2)


def test_nothing_binds_where_no_limit_is_known_or_groups_are_bounded_anyway() -> None:
    measured = [state(1, 16), state(2, 64)]
    assert token_limit(measured, RunSettings(), None) is None
    assert token_limit(measured, RunSettings(grouping="bounded"), 10_000) is None


def test_one_size_and_calls_without_known_tokens_say_nothing() -> None:
    assert token_limit([state(1, 16)], RunSettings(), 10_000) is None
    assert token_limit([state(1, 16), state(2, 16)], RunSettings(), 10_000) is None
    bare = state(1, 16).model_copy(update={"receipts": (receipt("g", stage="curate", usage=Usage()),)})
    assert token_limit([bare, bare], RunSettings(), 10_000) is None
    assert token_limit([State(number=1, state={}), state(2, 16)], RunSettings(), 10_000) is None


def test_a_call_that_takes_hardly_anything_still_gives_a_batch_of_one() -> None:
    assert token_limit([state(1, 16), state(2, 64)], RunSettings(), 10) == 1


@given(st.integers(1, 5000), st.integers(-50, 500), st.integers(1, 100_000))
def test_it_is_a_size_or_nothing_whatever_was_measured(base: int, each: int, limit: int) -> None:
    found = token_limit([state(1, 9, each=each), state(2, 49, base=base, each=each)], RunSettings(), limit)
    assert found is None or found >= 1
