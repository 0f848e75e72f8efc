"""What a cap leaves of a batch: the groups that are done, put together without another call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from combee_core.clustering import ALIKE
from combee_core.errors import BudgetSpent, CombeeError
from combee_core.fates import untouched
from combee_core.reduction import Reduction
from combee_core.types import Curated, Group, Merged

UNMERGED = "not merged: a cap was met"
"""Why operations that a merge call would have read are as their curators wrote them."""

_AT_ONCE = 32


class Salvaged(list[Curated]):
    """The changes of those groups of a batch that were done when a cap was met; `spent` says which cap."""

    def __init__(self, done: Sequence[Curated], spent: BudgetSpent) -> None:
        super().__init__(done)
        self.spent = spent


async def already_paid(groups: Sequence[Group], ask: Callable[[Group], Awaitable[Curated]]) -> list[Curated]:
    """The changes of the groups whose answers are saved. `ask` must be of a client that makes no new call."""
    door = asyncio.Semaphore(_AT_ONCE)

    async def one(group: Group) -> Curated | None:
        async with door:
            try:
                return await ask(group)
            except CombeeError:
                return None

    return [curated for curated in await asyncio.gather(*map(one, groups)) if curated]


def joined(curated: Sequence[Curated], alike: float | None = None) -> Merged:
    """The groups' changes as one list, as far as code alone can tell what says the same; the rest stands as it is."""
    reduction = Reduction([result.delta for result in curated], "cluster", alike=alike or ALIKE)
    while parts := reduction.parts:
        reduction.take([Merged(delta=untouched(operations, UNMERGED)) for _, operations in parts])
    return reduction.result()
