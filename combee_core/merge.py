"""Operations, state → fewer operations: one merge call. Which operations a call reads is the reduction's affair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from combee_core.client import Answered, Client
from combee_core.fates import side_by_side, untouched
from combee_core.parts import ask_in_parts
from combee_core.ports import Learner, Question
from combee_core.types import Delta, Merged, Operation


async def merge(
    part: Sequence[Operation], name: str, state: Any, *, learner: Learner[Any], client: Client, run: str
) -> Merged:
    """One list of operations out of `part`, with a fate for each, in their order; `name` is the call's.

    A list that is too large, cut or refused is merged in halves; a single operation that is refused even so passes as
    its curator wrote it.
    """

    async def ask(at: Sequence[int], wide: bool) -> tuple[Sequence[int], Answered[Delta]]:
        question = _named(learner.merge(state, [part[i] for i in at]), name)
        return at, await client.ask(question, run, wide=wide, several=len(at) > 1)

    asked = await ask_in_parts(range(len(part)), ask)
    pieces = [(at, answer.value) for at, answer in asked.answers]
    pieces += [((i,), untouched([part[i]], f"not merged: {error}")) for i, error in asked.left]
    return Merged(
        delta=side_by_side(pieces),
        receipts=tuple(receipt for _, answer in asked.answers for receipt in answer.receipts),
    )


def _named(question: Question[Delta], name: str) -> Question[Delta]:
    """The same question under a name of its own, as the calls of one stage need."""
    return replace(question, prompt=question.prompt.model_copy(update={"item": name}))
