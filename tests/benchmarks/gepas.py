"""GEPA's side of the comparison in peers.py. Importing this needs no gepa; calling it does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from combee_core.shuffle import group_sizes
from combee_core.types import Reflection

PART = "instructions"
COPIES = 2
THEIRS, RESTATED = "gepa", "restated with parts of gepa"

Record = dict[str, str]
Job = tuple[dict[str, str], dict[str, list[Record]], list[str]]
"""As GEPA calls it: a candidate's texts, feedback for each of them, and the names of those to rewrite."""


def whose() -> str:
    """Whose code makes the calls: THEIRS or RESTATED; empty without gepa."""
    try:
        import gepa.lm  # noqa: F401
    except ImportError:
        return ""
    return THEIRS if _theirs() else RESTATED


def proposals(
    reflections: Sequence[Reflection], model: str, count: int, in_flight: int
) -> Callable[[str, int], tuple[float, None]]:
    """GEPA's reduce of these reflections, asked of the server at an address with a seed; when it was done.

    One proposal takes its default path. Two or more are its best setting: all their maps are sent together, at most
    `in_flight` at once, then all their reduces.
    """
    records = [{"Inputs": one.trace_id, "Feedback": one.key_insight} for one in reflections]

    def run(url: str, seed: int) -> tuple[float, None]:
        from gepa.lm import LM

        lm: Any = LM(model, api_base=url, api_key="none")
        # Whoever asks for a batch asks without this argument, whose default is ten.
        lm.batch_complete = partial(lm.batch_complete, max_workers=in_flight)
        combee = (_theirs() or Released)(lm, rng=random.Random(seed))
        jobs = [({PART: "Answer."}, {PART: records}, [PART])] * count
        if count == 1:
            combee.reflect(*jobs[0])
        else:
            combee.reflect_many(jobs)
        return time.time(), None

    return run


def _theirs() -> Any:
    """GEPA's class, None in a release that has it not yet."""
    try:
        from gepa.proposer.reflective_mutation.combee import ComBEEReflectionLM
    except ImportError:
        return None
    return ComBEEReflectionLM


@dataclass
class Released:
    """The calls that `ComBEEReflectionLM` makes for one text, with the reflection and model classes of gepa 0.1.4.

    `reflect` asks for ⌊√n⌋ maps one by one and then for the reduce; `reflect_many` sends all maps in one wave and all
    reduces in another.
    """

    lm: Any
    rng: random.Random

    def reflect(self, candidate: dict[str, str], records: dict[str, list[Record]], parts: list[str]) -> Any:
        """One proposal."""
        proposed = [self._plain.reflect(*job)[0] for job in self._maps((candidate, records, parts))]
        return self._plain.reflect(*_reduce(candidate, proposed))[0]

    def reflect_many(self, jobs: Sequence[Job]) -> list[Any]:
        """A proposal for each job."""
        maps = [self._maps(job) for job in jobs]
        proposed = iter(self._plain.reflect_many([one for of_job in maps for one in of_job]))
        groups = [[next(proposed)[0] for _ in of_job] for of_job in maps]
        reduced = self._plain.reflect_many([_reduce(job[0], group) for job, group in zip(jobs, groups, strict=True)])
        return [proposal for proposal, _ in reduced]

    @property
    def _plain(self) -> Any:
        from gepa.proposer.reflective_mutation.reflection_lm import StatelessReflectionLM

        return StatelessReflectionLM(self.lm)

    def _maps(self, job: Job) -> list[Job]:
        candidate, records, parts = job
        sizes = group_sizes(len(records[PART]), COPIES)
        pool = records[PART] * COPIES
        self.rng.shuffle(pool)
        ends = accumulate(sizes)
        return [(candidate, {PART: pool[end - size : end]}, parts) for size, end in zip(sizes, ends, strict=True)]


def _reduce(candidate: dict[str, str], proposed: Sequence[Any]) -> Job:
    return candidate, {PART: [{"Proposed Instruction Update": one.new_texts[PART]} for one in proposed]}, [PART]
