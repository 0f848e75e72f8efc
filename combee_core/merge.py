"""Deltas, state → one delta: the second level of the reduce, in the paper's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combee_core.client import Answered, Client
from combee_core.errors import CombeeError
from combee_core.parts import ask_in_parts
from combee_core.ports import Learner
from combee_core.types import Delta, Merged, Operation, OperationFate


async def merge(deltas: Sequence[Delta], state: Any, *, learner: Learner[Any], client: Client, run: str) -> Merged:
    """One list of operations out of those of all groups.

    No call where there is nothing to merge: no operation, or those of one group alone. A list that is too large, cut
    or refused is merged in halves; a single operation that is refused even so passes as its curator wrote it.
    """
    operations = [op for delta in deltas for op in delta.operations]
    set_aside = tuple(item for delta in deltas for item in delta.set_aside)
    if sum(bool(delta.operations) for delta in deltas) <= 1:
        fates = tuple(OperationFate(text=op.text, origin=op.origin, fate="kept") for op in operations)
        return Merged(delta=Delta(operations=tuple(operations), set_aside=set_aside, fates=fates))

    async def ask(part: Sequence[Operation], wide: bool) -> Answered[Delta]:
        return await client.ask(learner.merge(state, part), run, wide=wide, several=len(part) > 1)

    parts = await ask_in_parts(operations, ask)
    answers = [answer.value for answer in parts.answers]
    return Merged(
        delta=Delta(
            operations=(*(op for delta in answers for op in delta.operations), *(op for op, _ in parts.left)),
            set_aside=(*set_aside, *(item for delta in answers for item in delta.set_aside)),
            fates=(*(fate for delta in answers for fate in delta.fates), *map(_unmerged, parts.left)),
        ),
        receipts=tuple(receipt for answer in parts.answers for receipt in answer.receipts),
    )


def _unmerged(left: tuple[Operation, CombeeError]) -> OperationFate:
    op, error = left
    return OperationFate(text=op.text, origin=op.origin, fate="kept", because=f"not merged: {error}")
