"""The stages as tasks: reflect, curate and rollout call a model, shuffle and merge are there to be seen too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from combee_core import curate as curating
from combee_core import merge as merging
from combee_core import reflect as reflecting
from combee_core import rollout as rolling
from combee_core import shuffle as shuffling
from combee_core.adapters.workshop import Place, calls, open_workshop
from combee_core.conclude import Results, conclude
from combee_core.types import Curated, Group, Reflected, RolledOut, Sample, Trajectory
from tasks.policies import plain, saved


@saved("rollout-s{shard:02d}")
def rollout(place: Place, shard: int, samples: Sequence[Sample], key: str) -> list[RolledOut]:
    """Solve a shard of samples with the playbook as it was before the batch."""
    shop = open_workshop(place)
    state = shop.state_before(place.number)

    async def all_of_them() -> list[RolledOut]:
        ways = (rolling.rollout(sample, state, scorer=shop.scorer, **shop.tools) for sample in samples)
        return await asyncio.gather(*ways)

    return calls(all_of_them())


@saved("reflect-{trajectory.trace_id}")
def reflect(place: Place, trajectory: Trajectory, key: str) -> Reflected:
    """What one trajectory taught."""
    shop = open_workshop(place)
    return calls(reflecting.reflect(trajectory, shop.state_before(place.number), **shop.tools))


@plain("shuffle")
def shuffle(place: Place, reflected: Sequence[Reflected]) -> tuple[Group, ...]:
    """Copies of the reflections, shuffled into about √n groups."""
    settings = open_workshop(place).settings
    reflections = [result.reflection for result in reflected if result.reflection]
    seed = shuffling.batch_seed(settings.seed, place.number)
    return shuffling.shuffle(reflections, settings.copies, seed, settings.shuffle)


@saved("curate-g{group.number:02d}")
def curate(place: Place, group: Group, key: str) -> Curated:
    """The changes that one group of reflections justifies."""
    shop = open_workshop(place)
    return calls(curating.curate(group, shop.state_before(place.number), **shop.tools))


@plain("merge")
def merge(
    place: Place,
    rolled: Sequence[RolledOut],
    reflected: Sequence[Reflected],
    groups: Sequence[Group],
    curated: Sequence[Curated],
) -> str:
    """Put the groups' changes together and write the state after the batch, once; its digest."""
    shop = open_workshop(place)
    state = shop.state_before(place.number)
    merged = calls(merging.merge([result.delta for result in curated], state, **shop.tools))
    results = Results(rolled, reflected, groups, curated, merged)
    after = conclude(place.number, state, shop.plan.base_version + 1, results, learner=shop.learner)
    return shop.learner.digest(shop.learner.load(shop.run.save_state(after).state))
