"""A stage mapped over a batch: one task an item, results in the items' order.

Inputs travel as `quote`: without it Prefect would walk every trajectory and every group in search of futures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import Task, unmapped
from prefect.utilities.annotations import quote

from combee_core.adapters.workshop import Place, open_workshop
from combee_core.types import Curated, Group, Reflected, RolledOut, Sample
from tasks import stages
from tasks.gather import collected, settled
from tasks.policies import kept


def rollout(place: Place, results: str) -> list[RolledOut]:
    """The batch's samples solved, a shard to a task; nothing where the batch has traces."""
    shop = open_workshop(place)
    samples, size = shop.batch(place.number).samples, shop.settings.rollout_shard
    shards: list[Sequence[Sample]] = [samples[i : i + size] for i in range(0, len(samples), size)]
    futures = _task(stages.rollout, place, results).map(
        unmapped(place),
        list(range(1, len(shards) + 1)),
        quote(shards),
        shop.task_keys("rollout", place.number, ([s.digest for s in shard] for shard in shards)),
    )
    names = [f"rollout-s{n:02d}" for n in range(1, len(shards) + 1)]
    return [rolled for shard in collected("rollout", names, futures) for rolled in shard]


def reflect(place: Place, results: str, rolled: Sequence[RolledOut]) -> list[Reflected]:
    """A reflection on each of the batch's trajectories. Raises `RunError` if too many fail."""
    shop = open_workshop(place)
    trajectories = [*shop.batch(place.number).trajectories, *(r.trajectory for r in rolled if r.trajectory)]
    futures = _task(stages.reflect, place, results).map(
        unmapped(place),
        quote(trajectories),
        shop.task_keys("reflect", place.number, ([t.trace_id, t.digest] for t in trajectories)),
    )
    return settled(trajectories, futures, shop.settings.max_failed)


def curate(place: Place, results: str, groups: Sequence[Group]) -> list[Curated]:
    """Each group's changes. Raises `RunError` naming the groups that failed."""
    shop = open_workshop(place)
    futures = _task(stages.curate, place, results).map(
        unmapped(place),
        quote(list(groups)),
        shop.task_keys("curate", place.number, (group.model_dump(mode="json") for group in groups)),
    )
    return collected("curate", [group.name for group in groups], futures)


def merge(
    place: Place,
    results: str,
    rolled: Sequence[RolledOut],
    reflected: Sequence[Reflected],
    groups: Sequence[Group],
    curated: Sequence[Curated],
) -> str:
    """One state out of all groups' changes; its digest. Raises `RunError`."""
    inputs = (quote(rolled), quote(reflected), quote(groups), quote(curated))
    future = _task(stages.merge, place, results).submit(place, *inputs)
    digest: str = collected("merge", ["merge"], [future])[0]
    return digest


def _task(stage: Task[Any, Any], place: Place, results: str) -> Task[Any, Any]:
    return kept(results, open_workshop(place).settings.model, stage)
