"""What became of operations, followed through every step of a reduce: none is lost, none counted twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from combee_core.types import Delta, Operation, OperationFate, SetAside

SILENT = "the merger did not mention it"
UNEXPLAINED = "no reason given"
"""Why an operation is not there any more, where nobody said."""


def untouched(operations: Sequence[Operation], because: str = "") -> Delta:
    """Operations that pass as they were written."""
    fates = (
        OperationFate(text=op.text, origin=op.origin, fate="kept", because=because, into=at)
        for at, op in enumerate(operations)
    )
    return Delta(operations=tuple(operations), fates=tuple(fates))


def side_by_side(pieces: Sequence[tuple[Sequence[int], Delta]]) -> Delta:
    """Deltas as one. Each comes with the places that its operations had in the list that all were cut from: that is
    the order of the fates, while operations stay in the order of the pieces."""
    operations, set_aside = list[Operation](), list[SetAside]()
    fates: dict[int, OperationFate] = {}
    for at, delta in pieces:
        fates |= {i: _moved(fate, len(operations)) for i, fate in zip(at, delta.fates, strict=True)}
        operations += delta.operations
        set_aside += delta.set_aside
    return Delta(
        operations=tuple(operations),
        set_aside=tuple(set_aside),
        fates=tuple(fates[i] for i in sorted(fates)),
        conflicts=tuple(conflict for _, delta in pieces for conflict in delta.conflicts),
    )


def followed(fates: Iterable[OperationFate], step: Delta) -> tuple[OperationFate, ...]:
    """The fates after one more step, which had the operations that they end in as its own."""
    return tuple(_then(fate, step) for fate in fates)


def _moved(fate: OperationFate, by: int) -> OperationFate:
    return fate if fate.into is None or not by else fate.model_copy(update={"into": fate.into + by})


def _then(fate: OperationFate, step: Delta) -> OperationFate:
    if fate.into is None:
        return fate
    later = step.fates[fate.into]
    if later.into is None:
        return fate.model_copy(update={"fate": "dropped", "because": later.because, "into": None})
    text = step.operations[later.into].text
    word = "merged" if "merged" in (fate.fate, later.fate) else "kept"
    because = f"into: {text}" if word == "merged" else later.because or fate.because
    if word == "kept" and text != fate.text:
        because = f"as: {text}"
    return fate.model_copy(update={"fate": word, "because": because, "into": later.into})
