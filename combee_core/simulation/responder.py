"""The simulated model as one pure function: a conversation and a seed in, the answer's JSON out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from combee_core.calls import Message
from combee_core.simulation.asked import asked
from combee_core.simulation.curator import curate
from combee_core.simulation.draws import Draws
from combee_core.simulation.generator import generate
from combee_core.simulation.merger import merge
from combee_core.simulation.overload import FORMULA, Curve, Merger, merged
from combee_core.simulation.reflector import reflect


def respond(messages: Sequence[Message], seed: int, curve: Curve = FORMULA, merger: Merger = merged) -> dict[str, Any]:
    """The answer to a prompt of the pipeline, in the form that its stage asks for.

    Depends on the texts and `seed` alone (a request's seed holds the attempt). A conversation without a
    known stage line, such as a check whether the model is there, is answered with a greeting.
    """
    ask = asked(messages)
    draws = Draws(seed, ask.stage, ask.text)
    match ask.stage:
        case "rollout":
            return generate(ask)
        case "reflect":
            return reflect(ask)
        case "curate":
            return curate(ask, draws, curve)
        case "merge":
            return merge(ask, draws, merger)
    return {"reply": "Ready."}


def answer_text(messages: Sequence[Message], seed: int, curve: Curve = FORMULA, merger: Merger = merged) -> str:
    """`respond` as the JSON text that the model sends."""
    return json.dumps(respond(messages, seed, curve, merger), ensure_ascii=False)
