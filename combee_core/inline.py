"""One batch in this process, without an orchestrator: the same stages that the Prefect tasks run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from combee_core.client import Client
from combee_core.clustering import ALIKE, Embed
from combee_core.conclude import Results, check_failures, conclude
from combee_core.config import RunSettings
from combee_core.curate import curate
from combee_core.errors import CombeeError, ModelUnusable, RunStopped
from combee_core.merge import merge
from combee_core.parts import together
from combee_core.ports import Learner, Scorer
from combee_core.records import Batch, State
from combee_core.reduction import Part, Reduction
from combee_core.reflect import reflect
from combee_core.rollout import rollout
from combee_core.shuffle import batch_seed, shuffle
from combee_core.survival import Tell
from combee_core.tfidf import vectors
from combee_core.types import Curated, Group, Merged, Reflected, RolledOut, Sample, Trajectory

R = TypeVar("R")


@dataclass(frozen=True)
class Inline:
    """Runs batches one after the other on a client; `naive` gives all reflections to a single curator call.

    `tell` names the known rules that a text states, where there are any, so that survival is counted exactly.
    `embed` makes vectors of texts, whose cosines tell a merge what is alike; it may block.
    """

    learner: Learner[Any]
    client: Client
    settings: RunSettings
    scorer: Scorer
    run: str = "inline"
    naive: bool = False
    tell: Tell | None = None
    embed: Embed = vectors

    async def iterate(self, batch: Batch, state: Any, version: int = 1) -> State:
        """The state after one batch; `version` is the one that its bullets will carry.

        Raises `RunError` when too many reflections fail, and the error of a rollout, group or merge.
        """
        rolled = await together(self._rollout(sample, state) for sample in batch.samples)
        trajectories = [*batch.trajectories, *(r.trajectory for r in rolled if r.trajectory)]
        reflected = await together(self._reflect(trajectory, state) for trajectory in trajectories)
        check_failures(reflected, self.settings.max_failed)
        results = await self.reduce(reflected, batch.number, state, rolled)
        return conclude(batch.number, state, version, results, learner=self.learner, tell=self.tell)

    async def reduce(
        self, reflected: Sequence[Reflected], number: int, state: Any, rolled: Sequence[RolledOut] = ()
    ) -> Results:
        """The reflections of batch `number`, shuffled, curated and merged; nothing is applied."""
        groups = self._groups(reflected, number)
        curated = await together(self._curate(group, state) for group in groups)
        return Results(rolled, reflected, groups, curated, await self.merge(curated, state))

    def _tools(self) -> dict[str, Any]:
        return {"learner": self.learner, "client": self.client, "run": self.run}

    async def _rollout(self, sample: Sample, state: Any) -> RolledOut:
        return await self._retried(lambda: rollout(sample, state, scorer=self.scorer, **self._tools()))

    async def _reflect(self, trajectory: Trajectory, state: Any) -> Reflected:
        try:
            return await self._retried(lambda: reflect(trajectory, state, **self._tools()))
        except (ModelUnusable, RunStopped):
            raise
        except CombeeError as error:
            return Reflected(trace_id=trajectory.trace_id, fate="failed", reason=f"{type(error).__name__}: {error}")

    async def _curate(self, group: Group, state: Any) -> Curated:
        return await self._retried(lambda: curate(group, state, **self._tools()))

    async def merge(self, curated: Sequence[Curated], state: Any) -> Merged:
        """The groups' operations put together, in as many calls and rounds as the settings' form takes."""
        deltas, form = [result.delta for result in curated], self.settings
        alike = form.alike or ALIKE
        # In a thread: finding out what is alike takes its time, all the more where a model is asked about it.
        reduction = await asyncio.to_thread(Reduction, deltas, form.merge, form.levels, self.embed, alike)
        while parts := reduction.parts:
            await asyncio.to_thread(reduction.take, await together(self._merge_part(part, state) for part in parts))
        return reduction.result()

    async def _merge_part(self, part: Part, state: Any) -> Merged:
        name, operations = part
        return await self._retried(lambda: merge(operations, name, state, **self._tools()))

    async def _retried(self, stage: Callable[[], Awaitable[R]]) -> R:
        """The stage's result, with the retries that an orchestrator would make."""
        model = self.settings.model
        for retry in range(model.retries):
            try:
                return await stage()
            except CombeeError as error:
                if not error.retryable:
                    raise
            await self.client.sleep(model.retry_delay * 2**retry)
        return await stage()

    def _groups(self, reflected: Sequence[Reflected], number: int) -> tuple[Group, ...]:
        reflections = [r.reflection for r in reflected if r.reflection and not r.reflection.is_nothing]
        if self.naive:
            entries = tuple(sorted(reflections, key=lambda r: r.trace_id))
            return (Group(number=1, of=1, entries=entries),) if entries else ()
        return shuffle(reflections, self.settings, batch_seed(self.settings.seed, number))
