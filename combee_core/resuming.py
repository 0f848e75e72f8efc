"""What a rerun will do: how far a run is, what is saved, what is missing. Reads the store alone and asks no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from combee_core.base import Noun
from combee_core.caps import CapUse
from combee_core.client import Client
from combee_core.config import OnBudget, RunSettings
from combee_core.curate import curate
from combee_core.history import Seen
from combee_core.ports import Learner, Scorer
from combee_core.records import Batch
from combee_core.reflect import reflect
from combee_core.rollout import rollout
from combee_core.salvage import already_paid
from combee_core.shuffle import batch_seed, shuffle
from combee_core.types import Reflected, Trajectory

_NAMED = 5


class Stage(Noun):
    """Of `of` items of a stage so many answers are saved; `missing` names the others."""

    saved: int = 0
    of: int = 0
    missing: tuple[str, ...] = ()


class Standing(Noun):
    """A run, and what is left of it: the batch that is next (0: none is left), and its stages.

    A stage is None while it is not known what it will work on. `traces` is the number in that batch, `later` that of
    the traces in the batches after it, `version` what a finished run published. `caps` are those that hold for what is
    left, and `on_budget` what becomes of the run at one.
    """

    seen: Seen
    number: int = 0
    traces: int = 0
    later: int = 0
    rollouts: Stage | None = None
    reflections: Stage | None = None
    groups: Stage | None = None
    version: int | None = None
    caps: tuple[CapUse, ...] = ()
    on_budget: OnBudget = "hold"

    @property
    def is_finished(self) -> bool:
        """True where nothing is left to do."""
        return self.version is not None


@dataclass(frozen=True)
class Reader:
    """Runs the stages of a batch on saved answers: whatever would need a call is missing."""

    learner: Learner[Any]
    client: Client
    settings: RunSettings
    scorer: Scorer
    run: str

    def __post_init__(self) -> None:
        # A client of its own: the process's client will be asked in earnest afterwards.
        object.__setattr__(self, "client", replace(self.client))
        self.client.stop("only what is saved is read")

    async def read(self, batch: Batch, state: Any) -> dict[str, Stage]:
        """The stages of a batch, as far as they can be known."""
        tools = {"state": state, "learner": self.learner, "client": self.client, "run": self.run}
        rolled = await already_paid(batch.samples, lambda sample: rollout(sample, scorer=self.scorer, **tools))
        stages = {"rollouts": _stage((sample.id for sample in batch.samples), rolled)}
        solved = [one.trajectory for one in rolled if one and one.trajectory]
        trajectories: list[Trajectory] = [*batch.trajectories, *solved]
        reflected = await already_paid(trajectories, lambda trajectory: reflect(trajectory, **tools))
        stages["reflections"] = _stage((trajectory.trace_id for trajectory in trajectories), reflected)
        if None in rolled or None in reflected:
            return stages
        groups = self._groups(filter(None, reflected), batch.number)
        curated = await already_paid(groups, lambda group: curate(group, **tools))
        return {**stages, "groups": _stage((group.name for group in groups), curated)}

    def _groups(self, reflected: Iterable[Reflected], number: int) -> Sequence[Any]:
        reflections = [result.reflection for result in reflected if result.reflection]
        return shuffle(reflections, self.settings, batch_seed(self.settings.seed, number))


def _stage(names: Iterable[str], results: Sequence[object]) -> Stage:
    missing = tuple(name for name, result in zip(names, results, strict=True) if result is None)
    return Stage(saved=len(results) - len(missing), of=len(results), missing=missing)


def explanation(standing: Standing) -> Iterator[str]:
    """How a run stands and what a rerun of it will do, as lines for a person."""
    seen = standing.seen
    yield f"run {seen.run} of playbook {seen.playbook}, {seen.what}: {seen.state}"
    if seen.failure:
        yield f"  ended at {seen.failure.told}"
    if standing.is_finished:
        yield f"  finished with version {standing.version}: nothing is to be done (--again starts a new run)"
        if seen.state == "budget":
            yield "  what a cap left out is in the backlog, if anything: for a night of its day, or learn --again"
        return
    of = f" of {seen.batches_planned}" if seen.batches_planned else ""
    yield f"  done: {seen.batches_done}{of} batches"
    if standing.number:
        yield f"  saved in batch {standing.number}: {', '.join(_saved(standing)) or 'nothing, it has not begun'}"
    yield f"  to do: {'; '.join(_left(standing))}"
    yield f"  caps: {'; '.join(_held(standing)) or 'none'}"


def _saved(standing: Standing) -> Iterator[str]:
    named = (("rollouts", standing.rollouts), ("reflections", standing.reflections), ("groups", standing.groups))
    for name, stage in named:
        if stage and stage.of:
            yield f"{stage.saved} of {stage.of} {name}"


def _left(standing: Standing) -> Iterator[str]:
    if standing.number:
        yield from filter(None, map(_asks, (standing.rollouts, standing.reflections)))
        groups = standing.groups
        if standing.reflections is None:
            yield f"all of batch {standing.number} ({standing.traces} traces)"
        elif groups is None:
            yield "its groups"
        elif groups.missing:
            yield f"groups {_names(groups.missing)}"
        yield f"the merge of batch {standing.number}"
    if standing.later:
        yield f"{standing.later} traces in later batches"
    yield "then one version is published"


def _held(standing: Standing) -> Iterator[str]:
    yield from (f"{cap.sentence} used" for cap in standing.caps)
    if standing.caps:
        then = {"hold": "nothing is published", "publish": "what is complete is published"}
        yield f"at one, {then[standing.on_budget]} (--on-budget {standing.on_budget})"


def _asks(stage: Stage | None) -> str:
    return f"ask about {_names(stage.missing)}" if stage and stage.missing else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
