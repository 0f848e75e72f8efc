"""A stage mapped over a batch: cut into shards, one task a shard, results in the items' order.

What goes to shuffle and merge is quoted: Prefect would walk every reflection and every group in search of futures.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from prefect import Task, get_run_logger, unmapped
from prefect.utilities.annotations import quote

from combee_core import curate as curating
from combee_core import merge as merging
from combee_core.adapters.embedding import embedding_of
from combee_core.adapters.inputs import WORLD
from combee_core.adapters.workshop import Place, Workshop, calls, open_workshop
from combee_core.causes import by_cause
from combee_core.clustering import ALIKE, load_soon
from combee_core.conclude import Results
from combee_core.config import AUTO
from combee_core.errors import BudgetSpent
from combee_core.events import event, some
from combee_core.records import Cut
from combee_core.reduction import Part, Reduction
from combee_core.salvage import Harvest, already_paid, joined
from combee_core.shards import ROLLOUTS, Unsettled, cut, shard_size
from combee_core.types import Curated, Group, Merged, Reflected, RolledOut, Trajectory
from tasks import stages
from tasks.gather import collected, gathered, outcome, settled
from tasks.policies import kept

T = TypeVar("T")

_TOLD = 3
"""Reasons that are in the log's line; the others are in the result."""


def rollout(place: Place, results: str) -> list[RolledOut]:
    """The batch's samples solved; nothing where the run has traces. Raises `RunError` naming those that failed."""
    shop = open_workshop(place)
    source = shop.plan.request.source
    if source.kind != "samples":
        return []
    samples = [(f"rollout-{sample.id}", sample) for sample in shop.batch(place.number).samples]
    judged_by = [source.scorer, source.ground_truth, [uri for uri in source.uris if uri.startswith(WORLD)]]
    done = _mapped(place, results, stages.rollout, samples, lambda s: [s.id, s.digest, *judged_by], ROLLOUTS)
    return collected("rollout", [name for name, _ in samples], done)


def reflect(place: Place, results: str, rolled: Sequence[RolledOut]) -> list[Reflected]:
    """A reflection on each of the batch's trajectories. Raises `RunError` if too many fail."""
    load_soon()
    shop = open_workshop(place)
    in_samples = shop.plan.request.source.kind == "samples"
    trajectories = _solved(rolled) if in_samples else shop.batch(place.number).trajectories
    named = [(f"reflect-{trajectory.trace_id}", trajectory) for trajectory in trajectories]
    done = _mapped(place, results, stages.reflect, named, lambda t: [t.trace_id, t.digest])
    return settled(trajectories, done, shop.settings.max_failed, _usual_size(shop))


def _usual_size(shop: Workshop) -> int:
    """What a batch is judged as, where it may be small only because it measures."""
    settings = shop.settings
    return min(settings.sizes.fallback, len(shop.plan.items)) if settings.batch_size == AUTO else 0


def _solved(rolled: Sequence[RolledOut]) -> tuple[Trajectory, ...]:
    return tuple(one.trajectory for one in rolled if one.trajectory)


def shuffle(place: Place, reflected: Sequence[Reflected]) -> tuple[Group, ...]:
    """The reflections' groups."""
    return stages.shuffle(place, quote(reflected))


def curate(place: Place, results: str, groups: Sequence[Group]) -> Harvest:
    """Each group's changes. Raises `RunError` naming the groups that failed.

    At a cap, where what is complete is to be published, those of the groups that are done, if any.
    """
    named = [(group.name, group) for group in groups]
    try:
        done = _mapped(place, results, stages.curate, named, lambda group: group.model_dump(mode="json"))
    except BudgetSpent as spent:
        return _salvaged(place, groups, spent)
    return Harvest(collected("curate", [name for name, _ in named], done))


def _salvaged(place: Place, groups: Sequence[Group], spent: BudgetSpent) -> Harvest:
    shop = open_workshop(place)
    if shop.settings.on_budget == "publish":
        # Of other processes' clients too: this one may not have met the cap itself.
        shop.client.stop(spent.facts)
        ask = partial(curating.curate, state=shop.state_before(place.number), **shop.tools)
        done = [curated for curated in calls(already_paid(groups, ask)) if curated]
        if done:
            return Harvest(done, spent)
    raise spent


def merge(
    place: Place,
    results: str,
    rolled: Sequence[RolledOut],
    reflected: Sequence[Reflected],
    groups: Sequence[Group],
    harvest: Harvest,
) -> str:
    """One state out of all groups' changes; its digest. Raises `RunError` naming what failed.

    Raises `BudgetSpent` at a cap; where what is complete is to be published, only after the state is written.
    """
    curated = harvest.curated
    merged, spent = _merged_within_budget(place, results, harvest)
    part = f"{len(curated)} of {len(groups)} groups of batch {place.number}"
    ended_here = Cut(batches=place.number, reason=spent.facts, part=part) if spent else None
    made = Results(rolled, reflected, groups, curated, merged, ended_here)
    writing = kept(results, open_workshop(place).settings.model, stages.merge)
    ended = writing(place, cast(Results, quote(made)), return_state=True)
    digest: str = collected("merge", ["merge"], [outcome(ended.result(raise_on_failure=False))])[0]
    if spent:
        raise spent
    return digest


def _merged_within_budget(place: Place, results: str, harvest: Harvest) -> tuple[Merged, BudgetSpent | None]:
    """The groups' changes put together; without a new call where a cap was met, and then with what was raised at it."""
    shop = open_workshop(place)
    try:
        if harvest.spent:
            raise harvest.spent
        return _merged(place, results, harvest.curated), None
    except BudgetSpent as spent:
        if shop.settings.on_budget == "hold":
            raise
        shop.client.stop(spent.facts)
        # Vectors of a model would be calls too, and its bar is not that of n-grams.
        alike = None if shop.settings.embedding else shop.settings.alike
        state = shop.state_before(place.number)

        def ask(part: Part) -> Awaitable[Merged]:
            return merging.merge(part[1], part[0], state, **shop.tools)

        return calls(joined(harvest.curated, ask, alike or ALIKE)), spent


def _merged(place: Place, results: str, curated: Sequence[Curated]) -> Merged:
    """The groups' changes put together, in as many rounds as it takes."""
    shop = open_workshop(place)
    settings, deltas = shop.settings, [result.delta for result in curated]
    embed = embedding_of(settings, shop.store)
    reduction = Reduction(deltas, settings.merge, settings.levels, embed, settings.alike or ALIKE)
    while parts := reduction.parts:
        named = [(name, (name, part)) for name, part in parts]
        done = _mapped(place, results, stages.merge_parts, named, _merge_identity)
        reduction.take(collected("merge", [name for name, _ in named], done))
    return reduction.result()


def _merge_identity(part: Part) -> list[Any]:
    name, operations = part
    return [name, [operation.model_dump(mode="json") for operation in operations]]


def _mapped(
    place: Place,
    results: str,
    stage: Task[Any, Any],
    named: Sequence[tuple[str, T]],
    identity: Callable[[T], Any],
    least: int = 1,
) -> list[Any]:
    """A result or an `Unsettled` for each item; `identity` is what its result depends on, as JSON-able data."""
    shop = open_workshop(place)
    run, batch = len(shop.plan.items), _batch_size(shop, place.number)
    size = shard_size(len(named), shop.settings.shard_size, batch=batch, run=run, least=least)
    shards = cut(stage.name, named, size)
    identities = ([identity(item) for item in shard.items] for shard in shards)
    keys = shop.task_keys(stage.name, place.number, identities)
    done = gathered(shards, kept(results, shop.settings.model, stage).map(unmapped(place), shards, keys))
    _name_failures(place, stage.name, [name for name, _ in named], done)
    return done


def _name_failures(place: Place, stage: str, names: Sequence[str], done: Sequence[Any]) -> None:
    failed = [(name, one.reason) for name, one in zip(names, done, strict=True) if isinstance(one, Unsettled)]
    if failed:
        items = [name for name, _ in failed]
        where = {"run": place.run, "batch": place.number, "stage": stage, "items": some(items), "count": len(failed)}
        text = f"{stage}: {len(failed)} of {len(done)}: {'; '.join(some(by_cause(failed), _TOLD))}"
        event(get_run_logger(), logging.WARNING, "items-failed", text, **where)


def _batch_size(shop: Workshop, number: int) -> int:
    sizing = shop.run.sizing()
    return len(shop.plan.items[sizing.part(number)]) if sizing else 0
