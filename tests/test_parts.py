"""Asking in halves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from asking import run
from hypothesis import given
from hypothesis import strategies as st

from combee_core.errors import (
    AnswerMalformed,
    AnswerTruncated,
    CombeeError,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
)
from combee_core.parts import Parts, ask_in_parts, together

Asked = list[tuple[int, ...]]


def halving(
    items: Sequence[int], problem: Callable[[Sequence[int]], CombeeError | None]
) -> tuple[Parts[int, int], Asked]:
    """Ask about the items; an answer is their sum, unless there is a problem with them."""
    asked: Asked = []

    async def ask(part: Sequence[int], wide: bool) -> int:
        asked.append(tuple(part))
        error = problem(part)
        if error:
            raise error
        return sum(part)

    return run(ask_in_parts(items, ask)), asked


def test_what_fits_is_asked_in_one() -> None:
    parts, asked = halving(range(13), lambda _: None)
    assert parts.answers == (78,)
    assert len(asked) == 1


@pytest.mark.parametrize("bad", range(13))
def test_one_refused_item_of_thirteen_costs_the_others_nothing(bad: int) -> None:
    parts, asked = halving(range(13), lambda part: ModelRefused("no") if bad in part else None)
    assert sum(parts.answers) == 78 - bad
    assert [item for item, _ in parts.left] == [bad]
    assert len(asked) <= 2 * 13 - 1


def test_the_larger_half_comes_first_and_answers_keep_the_items_order() -> None:
    parts, asked = halving(range(5), lambda part: ModelTooLarge("big") if len(part) > 2 else None)
    assert asked[0] == (0, 1, 2, 3, 4)
    assert set(asked[1:]) == {(0, 1, 2), (0, 1), (2,), (3, 4)}
    assert parts.answers == (1, 2, 7)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 41))
def test_every_item_is_answered_or_left_with_at_most_twice_as_many_prompts(bad: list[bool], most: int) -> None:
    def problem(part: Sequence[int]) -> CombeeError | None:
        if len(part) > most:
            return ModelTooLarge("big")
        return ModelRefused("no") if any(bad[i] for i in part) else None

    parts, asked = halving(range(len(bad)), problem)
    assert [item for item, _ in parts.left] == [i for i, is_bad in enumerate(bad) if is_bad]
    assert sum(parts.answers) == sum(i for i, is_bad in enumerate(bad) if not is_bad)
    assert len(asked) == len(set(asked)) <= 2 * len(bad) - 1


def test_a_cut_that_may_be_retried_is_the_callers_to_retry() -> None:
    with pytest.raises(AnswerTruncated):
        halving(range(4), lambda _: AnswerTruncated("cut"))


def test_below_a_final_cut_the_halves_are_asked_with_more_room_at_once() -> None:
    seen: list[tuple[int, bool]] = []

    async def ask(part: Sequence[int], wide: bool) -> int:
        seen.append((len(part), wide))
        if len(part) > 1:
            raise AnswerTruncated("cut", True)
        return 1

    parts = run(ask_in_parts(range(4), ask))
    assert parts.answers == (1, 1, 1, 1)
    assert {(4, False), (2, True), (1, True)} == set(seen)


@pytest.mark.parametrize("error", [ModelTooLarge("big"), ModelRefused("no")])
def test_below_other_errors_the_room_stays_as_it_is(error: CombeeError) -> None:
    seen: list[bool] = []

    async def ask(part: Sequence[int], wide: bool) -> int:
        seen.append(wide)
        if len(part) > 1:
            raise error
        return 1

    run(ask_in_parts(range(4), ask))
    assert not any(seen)


@pytest.mark.parametrize("error", [ModelUnusable("key"), ModelFault("500"), AnswerMalformed("no json")])
def test_an_error_that_halves_would_not_mend_is_raised(error: CombeeError) -> None:
    with pytest.raises(type(error)):
        halving(range(8), lambda _: error)


def test_a_single_item_that_fails_is_left_with_its_error() -> None:
    parts, asked = halving([7], lambda _: ModelTooLarge("7 is too much"))
    assert parts.answers == ()
    assert str(parts.left[0][1]) == "7 is too much"
    assert len(asked) == 1


def test_an_error_in_one_half_waits_for_the_other() -> None:
    """A call that was left in flight would be bought again by the retry."""
    ended: list[str] = []

    async def scene() -> None:
        failed = asyncio.Event()

        async def ask(part: Sequence[int], wide: bool) -> int:
            if len(part) == 4:
                raise ModelTooLarge("big")
            if 0 in part:
                failed.set()
                raise ModelFault("500")
            await failed.wait()
            await asyncio.sleep(0.01)
            ended.append("second half")
            return 1

        with pytest.raises(ModelFault):
            await ask_in_parts(range(4), ask)
        assert ended == ["second half"]

    run(scene())


# together


async def value(number: int) -> int:
    return number


async def failing(error: Exception) -> int:
    raise error


def test_results_come_in_order_whichever_ends_first() -> None:
    async def scene() -> list[int]:
        ended = [asyncio.Event() for _ in range(6)]
        ended[5].set()

        async def last_first(number: int) -> int:
            await ended[number + 1].wait()
            ended[number].set()
            return number

        return list(await together(last_first(n) for n in range(5)))

    assert run(scene()) == [0, 1, 2, 3, 4]


def test_nothing_together_is_nothing() -> None:
    assert run(together([])) == []


def test_a_final_error_is_raised_before_a_retryable_one() -> None:
    with pytest.raises(ModelUnusable):
        run(together([failing(ModelFault("500")), failing(ModelUnusable("401")), value(1)]))


def test_of_equal_errors_the_first_is_raised() -> None:
    with pytest.raises(ModelFault, match="first"):
        run(together([value(0), failing(ModelFault("first")), failing(ModelFault("second"))]))


def test_an_error_that_is_not_ours_counts_as_final() -> None:
    with pytest.raises(ZeroDivisionError):
        run(together([failing(ModelFault("500")), failing(ZeroDivisionError())]))
