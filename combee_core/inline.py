"""One batch in this process, without an orchestrator: the same stages that the Prefect tasks run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from combee_core.client import Client
from combee_core.conclude import check_failures, conclude
from combee_core.config import RunSettings
from combee_core.curate import curate
from combee_core.errors import CombeeError
from combee_core.merge import merge
from combee_core.ports import Learner, Scorer
from combee_core.records import Batch, State
from combee_core.reflect import reflect
from combee_core.rollout import rollout
from combee_core.shuffle import batch_seed, shuffle
from combee_core.types import Group, Reflected, RolledOut, Trajectory


@dataclass(frozen=True)
class Inline:
    """Runs batches one after the other on a client; `naive` gives all reflections to a single curator call."""

    learner: Learner[Any]
    client: Client
    settings: RunSettings
    scorer: Scorer
    run: str = "inline"
    naive: bool = False

    async def iterate(self, batch: Batch, state: Any, version: int = 1) -> State:
        """The state after one batch. Raises `RunError` when too many reflections fail, or the error of a group."""
        rolled = await asyncio.gather(*(self._rollout(sample, state) for sample in batch.samples))
        trajectories = [*batch.trajectories, *(r.trajectory for r in rolled if r.trajectory)]
        reflected = await asyncio.gather(*(self._reflect(trajectory, state) for trajectory in trajectories))
        check_failures(reflected, self.settings.max_failed)
        groups = self._groups(reflected, batch.number)
        curated = await asyncio.gather(*(curate(group, state, **self._tools()) for group in groups))
        merged = await merge([result.delta for result in curated], state, **self._tools())
        return conclude(
            batch.number,
            state,
            version,
            learner=self.learner,
            rolled=rolled,
            reflected=reflected,
            groups=groups,
            curated=curated,
            merged=merged,
        )

    def _tools(self) -> dict[str, Any]:
        return {"learner": self.learner, "client": self.client, "run": self.run}

    async def _rollout(self, sample: Any, state: Any) -> RolledOut:
        return await rollout(sample, state, scorer=self.scorer, **self._tools())

    async def _reflect(self, trajectory: Trajectory, state: Any) -> Reflected:
        try:
            return await reflect(trajectory, state, **self._tools())
        except CombeeError as error:
            return Reflected(trace_id=trajectory.trace_id, fate="failed", reason=str(error))

    def _groups(self, reflected: Sequence[Reflected], number: int) -> tuple[Group, ...]:
        reflections = [r.reflection for r in reflected if r.reflection and not r.reflection.is_nothing]
        if self.naive:
            return (Group(number=1, of=1, entries=tuple(reflections)),) if reflections else ()
        return shuffle(
            reflections, self.settings.copies, batch_seed(self.settings.seed, number), self.settings.shuffle
        )
