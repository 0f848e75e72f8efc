"""The stages as tasks. Those that call a model work on a shard of items; shuffle and merge are there to be seen too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from combee_core import backlog
from combee_core import curate as curating
from combee_core import merge as merging
from combee_core import reflect as reflecting
from combee_core import rollout as rolling
from combee_core import shuffle as shuffling
from combee_core.adapters.workshop import Place, open_workshop
from combee_core.conclude import Results, conclude
from combee_core.reduction import Part
from combee_core.shards import Shard
from combee_core.types import Group, Reflected, Sample, Trajectory
from tasks.policies import plain, saved, work_through


@saved("rollout")
def rollout(place: Place, shard: Shard[Sample], key: str) -> Any:
    """Solve samples with the playbook as it was before the batch."""
    shop = open_workshop(place)
    ask = partial(rolling.rollout, state=shop.state_before(place.number), scorer=shop.scorer, **shop.tools)
    return work_through(shop.work, shard, ask)


@saved("reflect")
def reflect(place: Place, shard: Shard[Trajectory], key: str) -> Any:
    """What trajectories taught."""
    shop = open_workshop(place)
    ask = partial(reflecting.reflect, state=shop.state_before(place.number), **shop.tools)
    return work_through(shop.work, shard, ask)


@plain("shuffle")
def shuffle(place: Place, reflected: Sequence[Reflected]) -> tuple[Group, ...]:
    """Copies of the reflections, shuffled into groups."""
    settings = open_workshop(place).settings
    reflections = [result.reflection for result in reflected if result.reflection]
    return shuffling.shuffle(reflections, settings, shuffling.batch_seed(settings.seed, place.number))


@saved("curate")
def curate(place: Place, shard: Shard[Group], key: str) -> Any:
    """The changes that groups of reflections justify."""
    shop = open_workshop(place)
    ask = partial(curating.curate, state=shop.state_before(place.number), **shop.tools)
    return work_through(shop.work, shard, ask)


@saved("merge")
def merge_parts(place: Place, shard: Shard[Part], key: str) -> Any:
    """Operations of several groups put together, a call for each part."""
    shop = open_workshop(place)
    state = shop.state_before(place.number)
    return work_through(shop.work, shard, lambda part: merging.merge(part[1], part[0], state, **shop.tools))


@plain("merge")
def merge(place: Place, results: Results) -> str:
    """Apply what the batch learned and write the state after it, once; its digest."""
    shop = open_workshop(place)
    state = shop.state_before(place.number)
    version, plan = shop.plan.base_version + 1, shop.plan
    day = backlog.day_of(shop.store, plan.request)
    after = conclude(place.number, state, version, results, learner=shop.learner, tell=shop.tell, plan=plan, day=day)
    return shop.learner.digest(shop.learner.load(shop.run.save_state(after).state))
