"""The demo's comparison: what is left of the same training samples after each way of learning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from combee_core.base import Noun, estimate
from combee_core.client import Client
from combee_core.config import RunSettings
from combee_core.inline import Inline
from combee_core.playbook import Playbook
from combee_core.playbook_text import render
from combee_core.ports import Learner
from combee_core.records import Batch, State
from combee_core.rollout import rollout
from combee_core.simulation.delays import minutes
from combee_core.simulation.world import World
from combee_core.types import RolledOut, Sample

TRAINING = 240
HELD_OUT = 400
_HELD_OUT_SEED = 1_000_003


class Row(Noun):
    """One method's line of the table. Accuracy is the share of held-out samples answered right."""

    name: str
    batch_size: int
    bullets: int
    playbook_tokens: int
    accuracy: float
    model_calls: int
    simulated_minutes: float


@dataclass(frozen=True)
class Experiment:
    """A world, its samples, and a client that answers in process."""

    world: World
    learner: Learner[Any]
    client: Client
    settings: RunSettings

    @property
    def training(self) -> tuple[Sample, ...]:
        """The samples that every method learns from."""
        return self.world.sample(TRAINING, self.settings.seed, "train")

    @property
    def held_out(self) -> tuple[Sample, ...]:
        """Samples of the same law that no method has seen."""
        return self.world.sample(HELD_OUT, self.settings.seed + _HELD_OUT_SEED, "held-out")

    async def baseline(self, name: str, batch_size: int, *, naive: bool = False) -> Row:
        """Learn without an orchestrator: "sequential" with batches of one, or all of a batch in one call."""
        inline = Inline(self.learner, self.client, self.settings, self.world.score, run=name, naive=naive)
        state, states = self.learner.empty(), list[State]()
        training = self.training
        for number, start in zip(count(1), range(0, len(training), batch_size), strict=False):
            batch = Batch(number=number, samples=training[start : start + batch_size])
            states.append(await inline.iterate(batch, state))
            state = self.learner.load(states[-1].state)
        calls = sum(self.client.ledger.calls(name).values())
        return await self.row(name, batch_size, state, states, calls)

    async def row(self, name: str, batch_size: int, state: Playbook, states: Sequence[State], calls: int) -> Row:
        """The line of a playbook that was learned in `states` with `calls` calls."""
        return Row(
            name=name,
            batch_size=batch_size,
            bullets=sum(1 for _ in state.bullets),
            playbook_tokens=estimate(render(state)) if any(True for _ in state.bullets) else 0,
            accuracy=await self._accuracy(state),
            model_calls=calls,
            simulated_minutes=round(minutes([s.receipts for s in states], self.settings.seed), 1),
        )

    async def _accuracy(self, state: Playbook) -> float:
        solved = await asyncio.gather(*(self._solve(sample, state) for sample in self.held_out))
        right = [r for r in solved if r.trajectory and r.trajectory.outcome.score == 1.0]
        return round(len(right) / len(solved), 4)

    async def _solve(self, sample: Sample, state: Playbook) -> RolledOut:
        return await rollout(
            sample, state, learner=self.learner, client=self.client, scorer=self.world.score, run="held-out"
        )
