"""Operations that contradict each other: found, kept apart, and told to a person.

The rule for what the playbook keeps: both stand as they were proposed, unless a merger dropped one and said why. A
merger that made one text of both, or lost one without a word, is not followed there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from combee_core.conflicts import contradictions
from combee_core.fates import SILENT, UNEXPLAINED, side_by_side, untouched
from combee_core.types import Conflict, Delta, Operation, OperationFate, OperationKind

_LOST = -1


def disputes(operations: Sequence[Operation], alike: Iterable[Sequence[int]]) -> Iterator[Conflict]:
    """The contradictions that code finds among operations that are alike."""
    for group in alike:
        claims = [operations[at] for at in group if operations[at].text]
        if len({op.text for op in claims}) > 1:
            for at, reason in contradictions([op.text for op in claims]):
                texts = {claims[i].text for i in at}
                sources = {source for op in claims if op.text in texts for source in op.sources}
                yield Conflict(texts=tuple(sorted(texts)), sources=tuple(sorted(sources)), reason=reason)


def kept_apart(part: Sequence[Operation], delta: Delta, conflicts: Sequence[Conflict]) -> Delta:
    """`delta`, the merger's answer about `part`, without the operations that were made of a contradiction: what went
    into one of them passes as it was proposed, and so does one side that was dropped without a reason."""
    blended = dict(_blended(part, delta, conflicts))
    reasons = {text: conflict.reason for conflict in conflicts for text in conflict.texts}
    went: dict[int | None, list[int]] = defaultdict(list)
    for at, (op, fate) in enumerate(zip(part, delta.fates, strict=True)):
        lost = fate.because in (SILENT, UNEXPLAINED) and op.text in reasons
        went[_LOST if lost else fate.into].append(at)
    if not blended and not went[_LOST]:
        return delta
    pieces: list[tuple[Sequence[int], Delta]] = [(went[None], Delta(fates=_at(delta, went[None], None)))]
    for made, op in enumerate(delta.operations):
        if made in blended:
            pieces.append((went[made], _standing(part, went[made], blended[made])))
        else:
            pieces.append((went[made], Delta(operations=(op,), fates=_at(delta, went[made], 0))))
    pieces += [((at,), _standing(part, [at], reasons[part[at].text])) for at in went[_LOST]]
    whole = side_by_side(pieces)
    return delta.model_copy(update={"operations": _one_change(whole.operations), "fates": whole.fates})


def _at(delta: Delta, places: Iterable[int], into: int | None) -> tuple[OperationFate, ...]:
    return tuple(delta.fates[at].model_copy(update={"into": into}) for at in places)


def _standing(part: Sequence[Operation], places: Iterable[int], reason: str) -> Delta:
    return untouched([part[at] for at in places], f"kept apart: {reason}")


def _blended(part: Sequence[Operation], delta: Delta, conflicts: Iterable[Conflict]) -> Iterator[tuple[int, str]]:
    """The places of the operations that were made of texts which contradict each other."""
    for conflict in conflicts:
        into: dict[int, set[str]] = defaultdict(set)
        for op, fate in zip(part, delta.fates, strict=True):
            if op.text in conflict.texts and fate.into is not None:
                into[fate.into].add(op.text)
        yield from ((made, conflict.reason) for made, texts in into.items() if len(texts) > 1)


def _one_change(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """A bullet is changed by the first of them only; what else would change it is added, so that both stand."""
    changed: set[str] = set()
    passing = []
    for op in operations:
        if op.text and changed & {*op.bullet_ids}:
            op = op.model_copy(update={"kind": OperationKind.ADD, "bullet_ids": (), "seen": ()})
        changed |= {*op.bullet_ids}
        passing.append(op)
    return tuple(passing)


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
