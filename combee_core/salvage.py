"""What a cap leaves of a batch: the groups that are done, put together without another call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from combee_core.clustering import ALIKE
from combee_core.errors import BudgetSpent, CombeeError
from combee_core.fates import untouched
from combee_core.reduction import Part, Reduction
from combee_core.types import Curated, Merged

T = TypeVar("T")
V = TypeVar("V")

UNMERGED = "not merged: a cap was met"
"""Why operations that a merge call would have read are as their curators wrote them."""

_AT_ONCE = 32


class Harvest(NamedTuple):
    """The changes of a batch's groups; with what was raised at a cap, of those that were done by then."""

    curated: Sequence[Curated]
    spent: BudgetSpent | None = None


async def already_paid(items: Sequence[T], ask: Callable[[T], Awaitable[V]]) -> list[V | None]:
    """What was answered of each item, from saved answers alone. `ask` must be of a client that makes no new call."""
    door = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> V | None:
        async with door:
            try:
                return await ask(item)
            except CombeeError:
                return None

    return list(await asyncio.gather(*map(one, items)))


async def joined(curated: Sequence[Curated], ask: Callable[[Part], Awaitable[Merged]], alike: float = ALIKE) -> Merged:
    """The groups' changes as one list, as far as code can tell what says the same and merge calls are paid for.

    `ask` is as for `already_paid`. The rest stands as its curators wrote it.
    """
    reduction = Reduction([result.delta for result in curated], "cluster", alike=alike)
    while parts := reduction.parts:
        found = await already_paid(parts, ask)
        reduction.take([one or _unmerged(part) for part, one in zip(parts, found, strict=True)])
    return reduction.result()


def _unmerged(part: Part) -> Merged:
    return Merged(delta=untouched(part[1], UNMERGED))
