"""Sample, state → trajectory: the generator solves a sample with the current playbook, a scorer judges it."""

from __future__ import annotations

from typing import Any

from combee_core.client import Client
from combee_core.errors import ModelRefused, ModelTooLarge
from combee_core.ports import Learner, Scorer, Solution
from combee_core.types import RolledOut, Sample, Step, Trajectory


async def rollout(
    sample: Sample, state: Any, *, learner: Learner[Any], client: Client, scorer: Scorer, run: str
) -> RolledOut:
    """One attempt at one sample. A sample that the model refuses or cannot take has no trajectory but a reason."""
    try:
        answered = await client.ask(learner.solve(state, sample), run)
    except (ModelRefused, ModelTooLarge) as error:
        large = "too large: " if isinstance(error, ModelTooLarge) else ""
        return RolledOut(sample_id=sample.id, reason=f"{large}{error}")
    trajectory = _trajectory(sample, answered.value, scorer)
    return RolledOut(sample_id=sample.id, trajectory=trajectory, receipts=answered.receipts)


def _trajectory(sample: Sample, solution: Solution, scorer: Scorer) -> Trajectory:
    text = f"{solution.reasoning}\n\nAnswer: {solution.answer}".strip()
    return Trajectory(
        trace_id=sample.id,
        task=sample.context,
        steps=(Step(role="assistant", text=text),),
        outcome=scorer(sample, solution.answer),
        cited=solution.cited,
    )
