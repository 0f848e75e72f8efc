"""A plan's traces cut into batches: each is picked from what the source holds when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combee_core.records import Batch, Item, Plan, Sizing
from combee_core.types import Sample, Trajectory

Pick = Callable[[Sequence[Item]], tuple[Trajectory, ...] | tuple[Sample, ...]]
"""Gives the trajectories or samples of a plan's items; raises `UsageError` for one that is gone or has changed."""


def next_batch(plan: Plan, number: int, sizing: Sizing, pick: Pick) -> Batch:
    """Batch `number` (from 1) of the plan, cut from what the source holds now. Raises what `pick` raises."""
    return batch_of(plan.items, number, sizing, pick)


def batch_of(items: Sequence[Item], number: int, sizing: Sizing, pick: Pick) -> Batch:
    """Batch `number` of these items, as `next_batch` would cut it."""
    chosen = pick(items[sizing.part(number)])
    return Batch(
        number=number,
        trajectories=tuple(t for t in chosen if isinstance(t, Trajectory)),
        samples=tuple(s for s in chosen if isinstance(s, Sample)),
    )
