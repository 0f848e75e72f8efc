"""Trajectory, state → reflection: the map step."""

from __future__ import annotations

from typing import Any

from combee_core.client import Client
from combee_core.errors import ModelRefused, ModelTooLarge
from combee_core.ports import Learner
from combee_core.types import Reflected, Trajectory


async def reflect(trajectory: Trajectory, state: Any, *, learner: Learner[Any], client: Client, run: str) -> Reflected:
    """What one trajectory taught; a refusal or a trace that is too large is a result with a reason, not an error."""
    trace_id = trajectory.trace_id
    try:
        answered = await client.ask(learner.reflect(state, trajectory), run)
    except ModelRefused as error:
        return Reflected(trace_id=trace_id, fate="refused", reason=str(error))
    except ModelTooLarge as error:
        return Reflected(trace_id=trace_id, fate="skipped", reason=f"too large: {error}")
    reflection = answered.value
    return Reflected(
        trace_id=trace_id,
        fate="nothing" if reflection.is_nothing else "insight",
        reflection=reflection,
        receipts=answered.receipts,
    )
