"""One proposed operation, checked: it has an effect or a stated reason why not.

Read as meant: any case of the type, DELETE for REMOVE, null for an absent key, one id or number where a list is asked
for, ids in brackets, numbers as 3, "3" or "r3". An ADD's id is ignored (ids are given by code), so is a REMOVE's
content; an UPDATE stays in its section. Anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from combee_core.errors import AnswerMalformed
from combee_core.playbook import Playbook, fold
from combee_core.types import Operation, OperationKind, SetAside

Raw = dict[str, Any]
Texts = Mapping[str, str]
"""Bullet id → text: what an operation may point at."""

_KEYS = frozenset({"type", "section", "content", "bullet_id", "bullet_ids", "from"})
_ALIASES = {"DELETE": "REMOVE"}
_SHOWN = 300


def read_operations(data: Any) -> list[Any]:
    """The list of operations in an answer: `{"operations": […]}` or a bare array; `[]` is a valid "nothing to do".

    Raises `AnswerMalformed` if there is no such list.
    """
    found = data.get("operations") if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise AnswerMalformed('the answer has no list of operations (an empty list would mean: "nothing to do")')
    return found


def texts_of(state: Playbook) -> Texts:
    """Every bullet's text by its id."""
    return {bullet.id: bullet.text for bullet in state.bullets}


def read_operation(raw: Any, texts: Texts, where: str) -> Operation | SetAside:
    """The operation without its sources, or why it is not used. `where` is the call that proposed it."""
    if problem := _problem(raw):
        return refuse(raw, problem, where)
    kind = OperationKind(kind_of(raw))
    ids = () if kind is OperationKind.ADD else ids_of(raw)
    text = "" if kind is OperationKind.REMOVE else fold(raw.get("content") or "")
    if problem := _mismatch(kind, ids, text, texts):
        return refuse(raw, problem, where)
    return Operation(
        kind=kind,
        text=text,
        section=fold(raw.get("section") or ""),
        bullet_ids=ids,
        seen=tuple(texts[bullet_id] for bullet_id in ids),
        origin=where,
    )


def refuse(raw: Any, reason: str, where: str) -> SetAside:
    """The record of something that is not used."""
    return SetAside(what=fold(str(raw)[:_SHOWN]), reason=reason, where=where)


def kind_of(raw: Raw) -> str:
    """The type in capitals, DELETE read as REMOVE; an unknown one as it is."""
    word = str(raw.get("type") or "").strip().upper()
    return _ALIASES.get(word, word)


def ids_of(raw: Raw) -> tuple[str, ...]:
    """The bullet ids of both keys, without brackets, each once."""
    given = [*_listed(raw.get("bullet_id")), *_listed(raw.get("bullet_ids"))]
    return tuple(dict.fromkeys(filter(None, (bare(value) for value in given))))


def numbers_of(raw: Raw, most: int, letter: str, where: str) -> tuple[list[int], list[SetAside]]:
    """The numbers in `from` that point at something shown (1 to `most`), sorted, and a note on each that does not."""
    numbers, strange = set(), []
    for value in _listed(raw.get("from")):
        for word in value.replace(",", " ").split() if isinstance(value, str) else [value]:
            number = number_in(word, letter)
            if 1 <= number <= most:
                numbers.add(number)
            else:
                reason = f"names {word!r}, but only {letter}1 to {letter}{most} were shown"
                strange.append(refuse(raw.get("content") or raw, reason, where))
    return sorted(numbers), strange


def number_in(value: Any, letter: str) -> int:
    """The number that `3`, `3.0`, `"3"`, `"r3"` or `"[r3]"` stand for (`letter` is "r"); 0 for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 0
    found = re.fullmatch(rf"\[?{letter}?([0-9]{{1,9}})[\].]?", str(value).strip().lower())
    return int(found[1]) if found else 0


def wording(op: Operation) -> str:
    """What an operation says: its text, or those of the bullets that it removes."""
    return op.text or " ".join(op.seen)


def bare(value: Any) -> str:
    """An id as text, without the brackets that it has in the playbook."""
    return str(value).strip().strip("[]").strip()


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _problem(raw: Any) -> str:
    if not isinstance(raw, dict):
        return "not an object"
    if unknown := sorted(set(raw) - _KEYS):
        return f"unknown key {unknown[0]!r}"
    if kind_of(raw) not in OperationKind.__members__:
        return f"unknown type {raw.get('type')!r}"
    for key in ("content", "section"):
        if not isinstance(raw.get(key), str | None):
            return f"{key} is not a text"
    for key in ("bullet_id", "bullet_ids"):
        if not all(isinstance(i, str | int) and not isinstance(i, bool) for i in _listed(raw.get(key))):
            return f"{key} is not an id"
    return ""


def _mismatch(kind: OperationKind, ids: Sequence[str], text: str, texts: Texts) -> str:
    if kind is not OperationKind.REMOVE and not text:
        return f"{kind} without content"
    if kind is OperationKind.ADD:
        return ""
    if unknown := [i for i in ids if i not in texts]:
        return f"{kind} of {unknown[0]}, which is not in the playbook"
    if kind is OperationKind.MERGE and len(ids) < 2:
        return "MERGE needs two bullets or more"
    if kind is not OperationKind.MERGE and len(ids) != 1:
        return f"{kind} needs one bullet id"
    return ""
