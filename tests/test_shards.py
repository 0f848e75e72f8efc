"""How items are cut into shards, and how a shard's items are worked on together."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.errors import AnswerMalformed, CombeeError, ModelBusy, ModelFault, ModelUnusable, RunStopped
from combee_core.shards import (
    LARGE_RUN,
    MOST_SHARDS,
    SEEN,
    Shard,
    ShardUnfinished,
    Unsettled,
    attempt,
    cut,
    failures,
    partial,
    shard_size,
    stops,
)


def named(count: int) -> list[tuple[str, int]]:
    return [(f"reflect-t{number}", number) for number in range(count)]


# sizes


@pytest.mark.parametrize("count", [0, 1, 40, SEEN])
def test_items_that_people_can_look_through_are_a_shard_each(count: int) -> None:
    assert shard_size(count, "auto") == 1


@given(st.integers(SEEN + 1, 1_000_000))
def test_more_items_never_make_more_than_a_fixed_number_of_shards(count: int) -> None:
    size = shard_size(count, "auto")
    assert -(-count // size) <= MOST_SHARDS
    assert size == 1 or -(-count // (size - 1)) > MOST_SHARDS, "no larger than it takes"


@given(st.integers(0, 100_000), st.integers(1, 1_000), st.integers(1, 64))
def test_a_number_is_taken_as_given(count: int, wanted: int, least: int) -> None:
    assert shard_size(count, wanted, run=count, least=least) == wanted


@pytest.mark.parametrize(("count", "size"), [(1, 8), (100, 8), (200, 8), (201, 13), (10_000, 625)])
def test_short_items_are_put_together_by_eight_at_least(count: int, size: int) -> None:
    assert shard_size(count, "auto", least=8) == size


@given(st.integers(1, 300), st.integers(LARGE_RUN + 1, 1_000_000))
def test_in_a_run_of_many_batches_each_of_them_makes_few_tasks(count: int, run: int) -> None:
    assert -(-count // shard_size(count, "auto", run=run)) <= MOST_SHARDS


@pytest.mark.parametrize(("run", "size"), [(200, 1), (LARGE_RUN, 1), (LARGE_RUN + 1, 13), (100_000, 13)])
def test_a_batch_of_two_hundred_is_seen_item_by_item_unless_the_run_is_large(run: int, size: int) -> None:
    assert shard_size(200, "auto", run=run) == size


def test_every_stage_of_a_large_batch_makes_few_tasks_however_few_its_own_items_are() -> None:
    assert shard_size(200, "auto", batch=SEEN) == 1
    assert shard_size(200, "auto", batch=SEEN + 1) == 13


# cutting


@given(st.integers(0, 300), st.integers(1, 70))
def test_every_item_is_in_one_shard_in_its_place(count: int, size: int) -> None:
    shards = cut("reflect", named(count), size)
    assert [item for shard in shards for item in shard.items] == list(range(count))
    assert [name for shard in shards for name in shard.names] == [name for name, _ in named(count)]
    assert all(len(shard.items) == size for shard in shards[:-1])
    assert all(shard.items for shard in shards)
    assert len({shard.name for shard in shards}) == len(shards)


def test_a_shard_of_one_has_its_items_name_and_others_a_number() -> None:
    assert [shard.name for shard in cut("reflect", named(2), 1)] == ["reflect-t0", "reflect-t1"]
    assert [shard.name for shard in cut("reflect", named(5), 2)] == [
        "reflect-s0001", "reflect-s0002", "reflect-s0003",
    ]  # fmt: skip


def test_shards_and_their_errors_travel_between_processes() -> None:
    shard = cut("reflect", named(3), 2)[0]
    assert vars(pickle.loads(pickle.dumps(shard))) == vars(shard)
    error = pickle.loads(pickle.dumps(ShardUnfinished("2 of 3 failed")))
    assert (str(error), error.retryable) == ("2 of 3 failed", True)


# working on a shard


def run(items: Sequence[int], errors: dict[int, BaseException], width: int = 100) -> tuple[list[Any], list[int], int]:
    """What a shard's items end with, which of them were asked, and how many at once."""
    asked: list[int] = []
    inside = most = 0

    async def ask(item: int) -> int:
        nonlocal inside, most
        asked.append(item)
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        if item in errors:
            raise errors[item]
        return 10 * item

    async def all_of_them() -> list[Any]:
        return await attempt(items, ask, asyncio.Semaphore(width))

    return asyncio.run(all_of_them()), asked, most


def test_an_items_error_does_not_end_the_others() -> None:
    fault = ModelFault("500")
    ended, asked, _ = run([1, 2, 3], {1: fault})
    assert ended == [fault, 20, 30]
    assert asked == [1, 2, 3]


@pytest.mark.parametrize("width", [1, 4])
def test_no_more_items_are_begun_than_the_door_lets_in(width: int) -> None:
    ended, _, most = run(range(20), {}, width)
    assert ended == [10 * item for item in range(20)]
    assert most == width


@pytest.mark.parametrize("fatal", [ModelUnusable("no such model"), RunStopped("enough"), ZeroDivisionError("a bug")])
def test_what_stops_a_run_is_raised_when_all_have_ended(fatal: Exception) -> None:
    asked: list[int] = []

    async def ask(item: int) -> int:
        if item == 0:
            raise fatal
        await asyncio.sleep(0)
        asked.append(item)
        return item

    async def all_of_them() -> list[Any]:
        return await attempt([0, 1, 2], ask, asyncio.Semaphore(3))

    with pytest.raises(type(fatal)):
        asyncio.run(all_of_them())
    assert asked == [1, 2], "a call left in flight would be paid for and lost"


def test_a_wrong_key_counts_more_than_other_errors() -> None:
    with pytest.raises(ModelUnusable):
        run([0, 1], {0: ModelFault("500"), 1: ModelUnusable("401")})


def test_errors_become_records_with_the_item_that_they_belong_to() -> None:
    shard = Shard("reflect-s0001", ("reflect-a", "reflect-b"), ("a", "b"))
    ended: list[str | CombeeError] = ["fine", AnswerMalformed("no JSON")]
    assert [(name, str(error)) for name, error in failures(shard, ended)] == [("reflect-b", "no JSON")]
    assert partial(ended) == ["fine", Unsettled(reason="AnswerMalformed: no JSON")]
    assert repr(partial(ended)) == "<1 of 2 results>", "a log line, not the whole shard"


def test_a_reason_is_in_words_and_holds_no_tuple() -> None:
    assert partial([ModelBusy("429", 3.0)]) == [Unsettled(reason="ModelBusy: 429")]


@pytest.mark.parametrize(
    ("error", "stopping"), [(ModelUnusable("x"), True), (RunStopped("x"), True), (ModelFault("x"), False)]
)
def test_a_wrong_key_and_a_stopped_run_stop_everything(error: CombeeError, stopping: bool) -> None:
    assert stops(error) is stopping
