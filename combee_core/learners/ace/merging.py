"""The merger's answer, read: what each operation rests on, and what became of each that entered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from combee_core.fates import SILENT, UNEXPLAINED
from combee_core.learners.ace.cite import Evidence, cite
from combee_core.learners.ace.operations import (
    Raw,
    Texts,
    ids_of,
    kind_of,
    number_in,
    numbers_of,
    read_operation,
    read_operations,
    refuse,
    texts_of,
    wording,
)
from combee_core.playbook import Playbook, fold
from combee_core.similarity import similarity
from combee_core.types import Conflict, Delta, Operation, OperationFate, OperationKind, SetAside

_WHERE = "merge"


def merged(data: Any, operations: Sequence[Operation], state: Playbook) -> Delta:
    """The merger's operations, with the sources of those they came from, and the fate of each that entered.

    A merger only joins what was proposed: an UPDATE or MERGE that rests on ADDs alone is read as an ADD, and a bullet
    that nobody proposed to change is not touched. Raises `AnswerMalformed` without a list of operations.
    """
    desk = _Desk(operations, texts_of(state))
    for raw in read_operations(data):
        desk.read(raw)
    dropped = dict(desk.dropped(data))
    fates = tuple(desk.fate(number, dropped.get(number)) for number in range(1, len(operations) + 1))
    conflicts = tuple(desk.conflicts(data))
    return Delta(operations=tuple(desk.kept), set_aside=tuple(desk.set_aside), fates=fates, conflicts=conflicts)


@dataclass
class _Desk:
    """`into[n]` is where in `kept` operation n went, and with how many; `refused[n]` why its use was refused."""

    operations: Sequence[Operation]
    texts: Texts
    kept: list[Operation] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    into: dict[int, tuple[int, int]] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def read(self, raw: Any) -> None:
        numbers, strange = self._numbers(raw) if isinstance(raw, dict) else ([], [])
        self.set_aside.extend(strange)
        parents = [self.operations[number - 1] for number in numbers]
        op = read_operation(_as_proposed(raw, parents), self.texts, _WHERE)
        if not isinstance(op, SetAside) and (reason := self._overreach(op)):
            op = refuse(raw, reason, _WHERE)
        if isinstance(op, SetAside):
            self.set_aside.append(op)
            self.refused |= dict.fromkeys(numbers, op.reason)
            return
        self._keep(op, numbers)

    def _numbers(self, raw: Raw) -> tuple[list[int], list[SetAside]]:
        """The operations that `raw` names, in `from` or, by a slip, as the bullets of a MERGE."""
        numbers, strange = numbers_of(raw, len(self.operations), "o", _WHERE)
        slips = [number_in(i, "o") for i in ids_of(raw) if i not in self.texts]
        return sorted({*numbers, *(n for n in slips if 1 <= n <= len(self.operations))}), strange

    @cached_property
    def _touched(self) -> frozenset[str]:
        return frozenset(bullet_id for op in self.operations for bullet_id in op.bullet_ids)

    @cached_property
    def _shown(self) -> list[Evidence[int]]:
        return [Evidence(number, wording(op)) for number, op in enumerate(self.operations, start=1)]

    def _overreach(self, op: Operation) -> str:
        alien = [bullet_id for bullet_id in op.bullet_ids if bullet_id not in self._touched]
        return f"nobody proposed to change {alien[0]}" if alien else ""

    def _keep(self, op: Operation, named: Sequence[int]) -> None:
        numbers = named or [self._closest(op)]
        for number in numbers:
            self.into.setdefault(number, (len(self.kept), len(numbers)))
        rests_on = cite(wording(op), numbers, self._shown)
        parents = [self.operations[number - 1] for number in rests_on.keys]
        self.kept.append(_inherit(op, parents, inferred=rests_on.inferred or not named))

    def _closest(self, op: Operation) -> int:
        words = wording(op)

        def rank(number: int) -> tuple[bool, float, int]:
            given = self.operations[number - 1]
            return given.bullet_ids == op.bullet_ids, similarity(words, wording(given)), -number

        return max(range(1, len(self.operations) + 1), key=rank)

    def dropped(self, data: Any) -> Iterator[tuple[int, str]]:
        """The answer's reasons by number; what points at nothing is listed."""
        for item in _listed(data, "dropped"):
            number = number_in(item.get("op"), "o") if isinstance(item, dict) else 0
            if 1 <= number <= len(self.operations):
                yield number, str(item.get("because") or UNEXPLAINED)
            else:
                self.set_aside.append(refuse(item, "names no operation that was shown", _WHERE))

    def conflicts(self, data: Any) -> Iterator[Conflict]:
        """The contradictions that the answer names, between operations or with bullets of the playbook."""
        for item in _listed(data, "conflicts"):
            named = {"from": item.get("ops"), "bullet_ids": item.get("bullet_ids")} if isinstance(item, dict) else {}
            numbers, _ = numbers_of(named, len(self.operations), "o", _WHERE)
            ops = [self.operations[number - 1] for number in numbers]
            bullets = [self.texts[bullet_id] for bullet_id in ids_of(named) if bullet_id in self.texts]
            if not ops:
                self.set_aside.append(refuse(item, "names no operation that was shown", _WHERE))
                continue
            yield Conflict(
                texts=tuple(sorted({*map(wording, ops), *bullets})),
                sources=tuple(sorted({source for op in ops for source in op.sources})),
                reason=fold(str(item.get("about") or "")) or "the merger says so",
            )

    def fate(self, number: int, because: str | None) -> OperationFate:
        op = self.operations[number - 1]
        if number not in self.into:
            refused = self.refused.get(number)
            reason = because or (f"the merger's operation was refused: {refused}" if refused else SILENT)
            return OperationFate(text=op.text, origin=op.origin, fate="dropped", because=reason)
        into, parents = self.into[number]
        text = self.kept[into].text
        if parents > 1:
            return OperationFate(text=op.text, origin=op.origin, fate="merged", because=f"into: {text}", into=into)
        reworded = f"as: {text}" if text != op.text else ""
        return OperationFate(text=op.text, origin=op.origin, fate="kept", because=reworded, into=into)


def _listed(data: Any, key: str) -> list[Any]:
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, list) else []


def _as_proposed(raw: Any, parents: Sequence[Operation]) -> Any:
    """An ADD where all that it rests on are ADDs, under the first one's heading if it names none."""
    adds = [parent for parent in parents if parent.kind is OperationKind.ADD]
    if not adds or not isinstance(raw, dict):
        return raw
    kind = kind_of(raw)
    if kind in (OperationKind.UPDATE, OperationKind.MERGE) and len(adds) == len(parents):
        raw = {**raw, "type": "ADD", "bullet_id": None, "bullet_ids": None}
    return {**raw, "section": raw.get("section") or adds[0].section} if kind_of(raw) == "ADD" else raw


def _inherit(op: Operation, parents: Sequence[Operation], *, inferred: bool) -> Operation:
    return op.model_copy(
        update={
            "sources": tuple(sorted({source for parent in parents for source in parent.sources})),
            "inferred": inferred or any(parent.inferred for parent in parents),
            "origin": ", ".join(dict.fromkeys(parent.origin for parent in parents)) or _WHERE,
        }
    )
