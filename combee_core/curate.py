"""Group, state → delta: the first level of the reduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combee_core.client import Answered, Client
from combee_core.errors import ModelRefused
from combee_core.parts import ask_in_parts
from combee_core.ports import Learner
from combee_core.types import Curated, Delta, Group, Reflection


async def curate(group: Group, state: Any, *, learner: Learner[Any], client: Client, run: str) -> Curated:
    """The operations of one group. What is too large (counted before it is sent), cut or refused is read in halves,
    and `calls` says in how many parts; a single reflection that is still refused is named in `refused`.

    Raises the error of a single reflection that is too large or cut even alone.
    """

    async def ask(entries: Sequence[Reflection], wide: bool) -> Answered[Delta]:
        part = group.model_copy(update={"entries": tuple(entries)})
        return await client.ask(learner.curate(state, part), run, wide=wide, several=len(entries) > 1)

    parts = await ask_in_parts(group.entries, ask)
    for _, error in parts.left:
        if not isinstance(error, ModelRefused):
            raise error
    return Curated(
        group=group.number,
        delta=join([answer.value for answer in parts.answers]),
        refused=tuple(sorted({reflection.trace_id for reflection, _ in parts.left})),
        calls=len(parts.answers) + len(parts.left),
        receipts=tuple(receipt for answer in parts.answers for receipt in answer.receipts),
    )


def join(deltas: Sequence[Delta]) -> Delta:
    """Several curators' deltas as one, in their order."""
    return Delta(
        operations=tuple(op for delta in deltas for op in delta.operations),
        set_aside=tuple(item for delta in deltas for item in delta.set_aside),
        conflicts=tuple(conflict for delta in deltas for conflict in delta.conflicts),
    )
