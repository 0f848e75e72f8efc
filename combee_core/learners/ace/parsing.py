"""Answers to nouns. What one item lacks costs that item alone, and it is listed; numbers become trace ids here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combee_core.errors import AnswerMalformed
from combee_core.learners.ace.cite import cite
from combee_core.learners.ace.operations import Raw, read_operation, read_operations
from combee_core.playbook import Playbook
from combee_core.ports import Solution
from combee_core.types import (
    BulletTag,
    Delta,
    Group,
    Operation,
    OperationFate,
    Reflection,
    SetAside,
    Trajectory,
)


def solution(data: Any) -> Solution:
    """The generator's answer. Raises `AnswerMalformed` without a final answer."""
    if not isinstance(data, dict) or data.get("final_answer") is None:
        raise AnswerMalformed("the generator's answer has no final_answer")
    cited = data.get("bullet_ids")
    ids = tuple(_bare(i) for i in cited if isinstance(i, str)) if isinstance(cited, list) else ()
    return Solution(answer=str(data["final_answer"]), cited=ids, reasoning=_text(data, "reasoning"))


def reflection(data: Any, trajectory: Trajectory) -> Reflection:
    """The reflector's answer. Raises `AnswerMalformed` if it does not say whether there is an insight."""
    if not isinstance(data, dict) or "key_insight" not in data:
        raise AnswerMalformed("the reflector's answer has no key_insight (an empty one would mean: nothing learned)")
    tags, strange = _tags(data.get("bullet_tags"), trajectory.trace_id)
    return Reflection(
        trace_id=trajectory.trace_id,
        key_insight=_text(data, "key_insight"),
        reasoning=_text(data, "reasoning"),
        error_identification=_text(data, "error_identification"),
        root_cause_analysis=_text(data, "root_cause_analysis"),
        correct_approach=_text(data, "correct_approach"),
        tags=tags,
        set_aside=strange,
        outcome=trajectory.outcome,
    )


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    return "" if value is None else str(value).strip()


def _bare(bullet_id: str) -> str:
    return bullet_id.strip().strip("[]").strip()


def _tags(raw: Any, trace_id: str) -> tuple[tuple[BulletTag, ...], tuple[SetAside, ...]]:
    tags, strange = [], []
    for item in raw if isinstance(raw, list) else []:
        bullet_id = _bare(str(item.get("id") or "")) if isinstance(item, dict) else ""
        word = str(item.get("tag") or "").strip().lower() if isinstance(item, dict) else ""
        if bullet_id and word in ("helpful", "harmful", "neutral"):
            tags.append(BulletTag.model_validate({"bullet_id": bullet_id, "tag": word}))
        else:
            strange.append(SetAside(what=str(item)[:200], reason="not a bullet tag", where=f"reflect-{trace_id}"))
    return tuple(tags), tuple(strange)


def curated(data: Any, group: Group, state: Playbook) -> Delta:
    """The curator's operations with the trace ids of the reflections that they name."""
    operations, set_aside = [], []
    for raw in read_operations(data):
        op = read_operation(raw, state, group.name)
        if isinstance(op, SetAside):
            set_aside.append(op)
            continue
        numbers, strange = _numbers(raw, len(group.entries), group.name, "r")
        set_aside.extend(strange)
        cited = cite(op.text or " ".join(op.seen), [group.entries[n - 1] for n in numbers], group.entries)
        operations.append(op.model_copy(update={"sources": cited.trace_ids, "inferred": cited.inferred}))
    return Delta(operations=tuple(operations), set_aside=tuple(set_aside))


def _numbers(raw: Raw, most: int, where: str, letter: str) -> tuple[list[int], list[SetAside]]:
    """The valid numbers of `from`, and those that point at nothing."""
    numbers, strange = [], []
    for value in raw.get("from") or []:
        digits = str(value).strip().lower().removeprefix(letter)
        if not isinstance(value, bool) and digits.isdecimal() and 1 <= int(digits) <= most:
            numbers.append(int(digits))
        else:
            reason = f"names {letter}{digits}, but only {letter}1 to {letter}{most} were shown"
            strange.append(SetAside(what=str(raw.get("content") or raw)[:200], reason=reason, where=where))
    return sorted(set(numbers)), strange


def merged(data: Any, operations: Sequence[Operation], state: Playbook) -> Delta:
    """The merger's operations, with the sources of those they came from, and the fate of each that entered."""
    kept, set_aside = [], []
    into: dict[int, tuple[int, str]] = {}
    for raw in read_operations(data):
        op = read_operation(raw, state, "merge")
        if isinstance(op, SetAside):
            set_aside.append(op)
            continue
        numbers, strange = _numbers(raw, len(operations), "merge", "o")
        set_aside.extend(strange)
        parents = numbers or [_closest(op, operations)]
        for number in parents:
            into.setdefault(number, (len(parents), op.text))
        kept.append(_inherit(op, [operations[n - 1] for n in parents], inferred=not numbers))
    because = _dropped(data)
    fates = tuple(
        _fate(op, into.get(number), because.get(number, "the merger did not mention it"))
        for number, op in enumerate(operations, start=1)
    )
    return Delta(operations=tuple(kept), set_aside=tuple(set_aside), fates=fates)


def _closest(op: Operation, operations: Sequence[Operation]) -> int:
    from combee_core.similarity import similarity

    ranked = [(similarity(op.text, other.text), -n) for n, other in enumerate(operations, start=1)]
    return -max(ranked)[1]


def _inherit(op: Operation, parents: Sequence[Operation], *, inferred: bool) -> Operation:
    sources = dict.fromkeys(source for parent in parents for source in parent.sources)
    origins = dict.fromkeys(parent.origin for parent in parents)
    return op.model_copy(
        update={
            "sources": tuple(sorted(sources)),
            "inferred": inferred or any(parent.inferred for parent in parents),
            "origin": ", ".join(origins),
        }
    )


def _dropped(data: Any) -> dict[int, str]:
    listed = data.get("dropped") if isinstance(data, dict) else None
    reasons = {}
    for item in listed if isinstance(listed, list) else []:
        number = str(item.get("op") or "").lower().removeprefix("o") if isinstance(item, dict) else ""
        if number.isdecimal():
            reasons[int(number)] = str(item.get("because") or "no reason given")
    return reasons


def _fate(op: Operation, into: tuple[int, str] | None, because: str) -> OperationFate:
    if into is None:
        return OperationFate(text=op.text, origin=op.origin, fate="dropped", because=because)
    parents, text = into
    if parents > 1:
        return OperationFate(text=op.text, origin=op.origin, fate="merged", because=f"into: {text}")
    return OperationFate(text=op.text, origin=op.origin, fate="kept")
