"""Operations that contradict each other: found, kept apart, and told to a person.

The rule for what the playbook keeps: both stand as they were proposed, unless a merger dropped one and said why. A
merger that made one text of both is not followed there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from combee_core.conflicts import contradictions
from combee_core.fates import side_by_side, untouched
from combee_core.types import Conflict, Delta, Operation, OperationFate, OperationKind


def disputes(operations: Sequence[Operation], alike: Iterable[Sequence[int]]) -> Iterator[Conflict]:
    """The contradictions that code finds among operations that are alike."""
    for group in alike:
        claims = [operations[at] for at in group if operations[at].text]
        if len({op.text for op in claims}) > 1:
            for at, reason in contradictions([op.text for op in claims]):
                texts = {claims[i].text for i in at}
                sources = {source for op in claims if op.text in texts for source in op.sources}
                yield Conflict(texts=tuple(sorted(texts)), sources=tuple(sorted(sources)), reason=reason)


def kept_apart(part: Sequence[Operation], delta: Delta, conflicts: Iterable[Conflict]) -> Delta:
    """`delta`, the merger's answer about `part`, without the operations that were made of a contradiction: what went
    into one of them passes as it was proposed."""
    reasons = dict(_blended(part, delta, conflicts))
    if not reasons:
        return delta
    went: dict[int, list[int]] = defaultdict(list)
    for at, fate in enumerate(delta.fates):
        if fate.into is not None:
            went[fate.into].append(at)
    lost = [at for at, fate in enumerate(delta.fates) if fate.into is None]
    pieces: list[tuple[Sequence[int], Delta]] = [(lost, Delta(fates=tuple(delta.fates[at] for at in lost)))]
    for made, op in enumerate(delta.operations):
        its = went[made]
        if made in reasons:
            pieces.append((its, untouched(_one_change([part[at] for at in its]), f"kept apart: {reasons[made]}")))
        else:
            fates = (delta.fates[at].model_copy(update={"into": 0}) for at in its)
            pieces.append((its, Delta(operations=(op,), fates=tuple(fates))))
    whole = side_by_side(pieces)
    return whole.model_copy(update={"set_aside": delta.set_aside, "conflicts": delta.conflicts})


def _blended(part: Sequence[Operation], delta: Delta, conflicts: Iterable[Conflict]) -> Iterator[tuple[int, str]]:
    """The places of the operations that were made of texts which contradict each other."""
    for conflict in conflicts:
        into: dict[int, set[str]] = defaultdict(set)
        for op, fate in zip(part, delta.fates, strict=True):
            if op.text in conflict.texts and fate.into is not None:
                into[fate.into].add(op.text)
        yield from ((made, conflict.reason) for made, texts in into.items() if len(texts) > 1)


def _one_change(operations: Sequence[Operation]) -> list[Operation]:
    """A bullet is changed by the first of them only; what else would change it is added, so that both stand."""
    changed: set[str] = set()
    passing = []
    for op in operations:
        if op.text and changed & {*op.bullet_ids}:
            op = op.model_copy(update={"kind": OperationKind.ADD, "bullet_ids": (), "seen": ()})
        changed |= {*op.bullet_ids}
        passing.append(op)
    return passing


def told(conflicts: Iterable[Conflict], fates: Sequence[OperationFate]) -> tuple[Conflict, ...]:
    """Each contradiction once, with what a merger dropped of it and why."""
    dropped = {fate.text: fate.because for fate in fates if fate.fate == "dropped"}
    once: dict[tuple[str, ...], Conflict] = {}
    for conflict in conflicts:
        once.setdefault(tuple(sorted(conflict.texts)), conflict)
    return tuple(
        conflict.model_copy(update={"reason": "; ".join([conflict.reason, *_gone(conflict, dropped)])})
        for _, conflict in sorted(once.items())
    )


def _gone(conflict: Conflict, dropped: dict[str, str]) -> list[str]:
    return [f"the merge dropped “{text}”: {dropped[text]}" for text in conflict.texts if text in dropped]
