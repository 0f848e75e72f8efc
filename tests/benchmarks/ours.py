"""Our side of the comparison in peers.py: the same reflections, reduced in this process, through the whole client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.adapters.memory_store import MemoryStore
from combee_core.calls import Completion, Request
from combee_core.client import Client
from combee_core.config import ModelSettings, RunSettings
from combee_core.inline import Inline
from combee_core.learners import load_learner
from combee_core.records import Batch
from combee_core.saving import SavedAnswers
from combee_core.simulation.day import day
from combee_core.simulation.model import SimulatedModel
from combee_core.simulation.responder import respond
from combee_core.simulation.specifics import stated_in
from combee_core.simulation.world import World
from combee_core.types import Reflection, Trajectory

N = 100
IN_FLIGHT = 128
"""Calls at once, for each way."""
MODEL = "openai/simulated/overload"
WORLD = World(rules=N // 2)
PAPER = RunSettings(grouping="paper", merge="paper", model=ModelSettings(model=MODEL, concurrency=IN_FLIGHT, hedge=0))
"""The paper's form: it makes as many calls as GEPA's, so that each has its counterpart with the same delay."""

Way = Callable[[str, int], tuple[float, int | None]]
"""Works on the server at an address with a seed: when it was done, and the distinct rules in what came out if known."""


class ReduceOnly:
    """Reflections come from the stand-in in this process, at once; curate and merge calls go to the server."""

    def __init__(self, url: str) -> None:
        self._near, self._far = SimulatedModel(), LitellmModel(MODEL, url)
        self.name, self.context_tokens = self._far.name, None

    def count(self, text: str) -> int:
        """An estimate."""
        return self._near.count(text)

    async def preflight(self) -> None:
        """Nothing is looked at: the calls will tell."""

    async def complete(self, request: Request) -> Completion:
        """Ask once."""
        near = request.prompt.stage == "reflect"
        return await (self._near if near else self._far).complete(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._far.aclose()


Learn = Callable[[Inline], Awaitable[Mapping[str, Any]]]
"""Learns from all runs and gives the state after it."""


def ours(learn: Learn, settings: RunSettings = PAPER, naive: bool = False) -> Way:
    """A way that learns in this process, through the client and litellm."""

    async def run(url: str, seed: int) -> tuple[float, int]:
        own, model, learner = settings.model_copy(update={"seed": seed}), ReduceOnly(url), load_learner("ace")
        client = Client(model, SavedAnswers(MemoryStore(url)), own.model, learner.fingerprint, seed)
        try:
            state = await learn(Inline(learner, client, own, WORLD.score, naive=naive))
            done = time.time()
        finally:
            await model.aclose()
        return done, rules_in(learner.context(learner.load(state)))

    return lambda url, seed: asyncio.run(run(url, seed))


async def in_one_batch(inline: Inline) -> Mapping[str, Any]:
    """All reflections in one batch."""
    return (await inline.iterate(Batch(number=1, trajectories=runs()), inline.learner.empty())).state


async def in_two_batches(inline: Inline) -> Mapping[str, Any]:
    """The same batch twice, side by side, in different shuffles: as much work as GEPA's two proposals."""
    batches = (Batch(number=number, trajectories=runs()) for number in (1, 2))
    first, _ = await asyncio.gather(*(inline.iterate(batch, inline.learner.empty()) for batch in batches))
    return first.state


async def one_by_one(inline: Inline) -> Mapping[str, Any]:
    """Each reflection in a call of its own, on the playbook that the one before it left."""
    state: Mapping[str, Any] = inline.learner.dump(inline.learner.empty())
    for number, run in enumerate(runs(), start=1):
        after = await inline.iterate(Batch(number=number, trajectories=(run,)), inline.learner.load(state))
        state = after.state
    return state


def rules_in(text: str) -> int:
    """Distinct hidden rules that a text states."""
    return len({stated.specific for stated in stated_in(text)})


@lru_cache(maxsize=1)
def runs() -> tuple[Trajectory, ...]:
    """The runs that are reflected on: all of them failures."""
    return day(WORLD, N, seed=1)


def reflections() -> list[Reflection]:
    """What they teach, for those who are given reflections."""
    learner = load_learner("ace")
    questions = [learner.reflect(learner.empty(), run) for run in runs()]
    return [question.parse(respond(question.prompt.messages, 0)) for question in questions]
