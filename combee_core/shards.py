"""How the items of a stage are cut into shards, and how the items of one shard are worked on together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from combee_core.base import Noun
from combee_core.config import Auto
from combee_core.errors import CombeeError, ModelUnusable, RunStopped

T = TypeVar("T")
R = TypeVar("R")

Door = AbstractAsyncContextManager[None]
"""Lets a limited number of items in at a time, such as `asyncio.Semaphore`."""

Work = Callable[[Sequence[Any], Callable[[Any], Awaitable[Any]]], list[Any]]
"""Does what `attempt` does and waits for it: items and what to ask about each → a result or an error for each."""

SEEN = 200
"""Items of a batch up to which each is a shard of its own, which people see by its name."""

ROLLOUTS = 8
"""Samples of a rollout shard at least: a rollout is short, and people look at reflections."""

MOST_SHARDS = 16
"""Shards of a larger stage: a task costs as much as some calls, and an orchestrator that is told of every item loses
its records at some thousands."""

LARGE_RUN = 2_000
"""Items of a whole run above which even a small batch makes few tasks: there will be many such batches."""


class Shard(Generic[T]):
    """Items of a stage that one task works on, with the names that people know them by.

    A plain class: orchestrators walk through collections, dataclasses and models in search of futures, and would walk
    through every step of every item.
    """

    def __init__(self, name: str, names: Sequence[str], items: Sequence[T]) -> None:
        self.name = name
        self.names = tuple(names)
        self.items = tuple(items)


class Unsettled(Noun):
    """In the place of an item's result: why there is none yet. Asked again, it may still come."""

    reason: str


class ShardUnfinished(CombeeError):
    """Some items of a shard failed and may succeed when they are asked again; the others are saved."""

    retryable = True


def shard_size(count: int, wanted: int | Auto, *, batch: int = 0, run: int = 0, least: int = 1) -> int:
    """Items to a shard, where a stage has `count` of them in a batch of `batch` traces and a run of `run` in all.

    A number is taken as given. "auto" is one item a shard while all is small, else so many that the shards are few;
    at least `least`.
    """
    if isinstance(wanted, int):
        return wanted
    alone = max(count, batch) <= SEEN and run <= LARGE_RUN
    return max(least, 1 if alone else -(-count // MOST_SHARDS))


def cut(stage: str, named: Sequence[tuple[str, T]], size: int) -> list[Shard[T]]:
    """Named items in contiguous shards of `size`, the last one shorter where it does not go into their number.

    A shard of one item has the item's name, others are `<stage>-s0001` and so on.
    """
    parts = [named[start : start + size] for start in range(0, len(named), size)]
    return [
        Shard(
            part[0][0] if size == 1 else f"{stage}-s{number:04d}",
            [name for name, _ in part],
            [item for _, item in part],
        )
        for number, part in enumerate(parts, start=1)
    ]


async def attempt(items: Sequence[T], ask: Callable[[T], Awaitable[R]], door: Door) -> list[R | CombeeError]:
    """Ask about all items, each inside `door`: a result or an error for each, in order, once all have ended.

    One item's error does not end the others. An error that stops the whole run is raised, and one that is not ours:
    it is a fault of the code.
    """

    async def one(item: T) -> R:
        async with door:
            return await ask(item)

    ended = await asyncio.gather(*map(one, items), return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException) and (stops(result) or not isinstance(result, CombeeError)):
            raise result
    return [result for result in ended if not isinstance(result, BaseException) or isinstance(result, CombeeError)]


def stops(error: BaseException) -> bool:
    """Whether nothing that is asked later can succeed: a wrong key, or a run that is being stopped."""
    return isinstance(error, ModelUnusable | RunStopped)


def failures(shard: Shard[T], ended: Sequence[object]) -> list[tuple[str, CombeeError]]:
    """The items of a shard that have an error, by name."""
    return [(name, one) for name, one in zip(shard.names, ended, strict=True) if isinstance(one, CombeeError)]


class Partial(list[R | Unsettled]):
    """What a shard has, with an `Unsettled` for each error. Short where it is printed, as in an orchestrator's log."""

    def __repr__(self) -> str:
        missing = sum(isinstance(one, Unsettled) for one in self)
        return f"<{len(self) - missing} of {len(self)} results>"


def partial(ended: Sequence[R | CombeeError]) -> Partial[R]:
    """The results, with the errors as records of why there is none."""
    return Partial(Unsettled(reason=reason(one)) if isinstance(one, CombeeError) else one for one in ended)


def reason(error: CombeeError) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"
