"""Which operations code joins by itself, and which must be read together by one merge call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from combee_core.conflicts import difference, skeleton
from combee_core.similarity import plain
from combee_core.types import Delta, Operation, OperationFate, OperationKind

Places = tuple[int, ...]
"""Where some of a list's operations stand in it, in order."""


def wording(op: Operation) -> str:
    """What an operation is about: its text, or those of the bullets that it removes."""
    return op.text or " ".join(op.seen)


def equal(operations: Sequence[Operation]) -> list[Places]:
    """Operations that say the same in the same words and do the same. An ADD joins the one change of a bullet that
    says what it says; where several bullets would change to it, that is for a merger."""
    piles: dict[tuple[str, Places | tuple[str, ...]], list[int]] = defaultdict(list)
    changed: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for op in operations:
        if op.kind is not OperationKind.ADD:
            changed[plain(op.text)].add(_target(op))
    for at, op in enumerate(operations):
        words, target = plain(op.text), _target(op)
        if not target and len(changed[words]) == 1:
            (target,) = changed[words]
        piles[words, target].append(at)
    return [tuple(pile) for pile in piles.values()]


def of_one_trace(operations: Sequence[Operation], alike: Iterable[Sequence[int]]) -> list[Places]:
    """Alike operations that one trace alone stands behind: its copies were put in different words. What differs in a
    value or a name stays apart."""
    piles: list[list[int]] = []
    for group in alike:
        mine: dict[tuple[tuple[str, ...], tuple[str, ...]], list[list[int]]] = defaultdict(list)
        for at in group:
            op = operations[at]
            its = mine[op.sources, _target(op)] if len(op.sources) == 1 else []
            fitting = (p for p in its if not any(difference(op.text, operations[i].text) for i in p))
            pile = next(fitting, None)
            if pile is None:
                piles.append(pile := [])
                its.append(pile)
            pile.append(at)
    return [tuple(pile) for pile in piles]


def together(operations: Sequence[Operation], alike: Iterable[Sequence[int]]) -> list[Places]:
    """Operations that only a reader can settle: alike, or on the same bullet. Most stand alone."""
    touching: dict[str, list[int]] = defaultdict(list)
    for at, op in enumerate(operations):
        for bullet_id in op.bullet_ids:
            touching[bullet_id].append(at)
    return united(len(operations), [*alike, *touching.values()])


def but_for_values(operations: Sequence[Operation]) -> list[list[int]]:
    """Operations whose texts are the same but for values and telling words, such as "percent" and "decimal"."""
    same: dict[str, list[int]] = defaultdict(list)
    for at, op in enumerate(operations):
        if bare := skeleton(op.text):
            same[bare].append(at)
    return list(same.values())


def united(count: int, groups: Iterable[Sequence[int]]) -> list[Places]:
    """A partition of 0 to `count` - 1 that keeps the members of each group together."""
    root = list(range(count))

    def top(at: int) -> int:
        while root[at] != at:
            root[at] = at = root[root[at]]
        return at

    for first, *rest in groups:
        for other in rest:
            root[max(top(first), top(other))] = min(top(first), top(other))
    found: dict[int, list[int]] = defaultdict(list)
    for at in range(count):
        found[top(at)].append(at)
    return [tuple(places) for places in found.values()]


def needs_a_reader(operations: Sequence[Operation]) -> bool:
    """False for one operation, and for additions that rest on one trace alone: rare but specific is the point."""
    if len(operations) < 2:
        return False
    traces = {source for op in operations for source in op.sources}
    return len(traces) > 1 or any(op.bullet_ids for op in operations)


def joined(operations: Sequence[Operation]) -> Delta:
    """Operations that say the same as one, with everybody's traces; in the words that are used most often, else the
    shortest."""
    if len(operations) == 1:
        (only,) = operations
        return Delta(operations=(only,), fates=(_fate(only, only, "kept"),))
    said = Counter(op.text for op in operations)
    first = min(operations, key=lambda op: (not op.bullet_ids, -said[op.text], len(op.text), op.text))
    one = first.model_copy(
        update={
            "sources": tuple(sorted({source for op in operations for source in op.sources})),
            "inferred": any(op.inferred for op in operations),
            "origin": ", ".join(dict.fromkeys(op.origin for op in operations)),
        }
    )
    return Delta(operations=(one,), fates=tuple(_fate(op, one, "merged") for op in operations))


def _fate(op: Operation, one: Operation, word: str) -> OperationFate:
    because = f"into: {one.text}" if word == "merged" else ""
    return OperationFate.model_validate(
        {"text": op.text, "origin": op.origin, "fate": word, "because": because, "into": 0}
    )


def _target(op: Operation) -> tuple[str, ...]:
    return () if op.kind is OperationKind.ADD else (op.kind, *op.bullet_ids)
