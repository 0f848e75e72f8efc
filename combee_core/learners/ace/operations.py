"""One proposed operation, checked: it has an effect or a stated reason why not."""

from __future__ import annotations

from typing import Any

from combee_core.errors import AnswerMalformed
from combee_core.playbook import Playbook, fold
from combee_core.types import Operation, OperationKind, SetAside

Raw = dict[str, Any]

_KEYS = frozenset({"type", "section", "content", "bullet_id", "bullet_ids", "from"})
_ALIASES = {"DELETE": "REMOVE"}


def read_operations(data: Any) -> list[Any]:
    """The list of operations in an answer: `{"operations": […]}` or a bare array; `[]` is a valid "nothing to do".

    Raises `AnswerMalformed` if there is no such list.
    """
    found = data.get("operations") if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise AnswerMalformed('the answer has no list of operations (an empty list would mean: "nothing to do")')
    return found


def read_operation(raw: Any, state: Playbook, where: str) -> Operation | SetAside:
    """The operation without its sources, or why it is not used."""
    problem = _problem(raw)
    if problem:
        return _refuse(raw, problem, where)
    kind = OperationKind(_kind(raw))
    ids = tuple(dict.fromkeys(_ids(raw)))
    text = fold(str(raw.get("content") or ""))
    problem = _mismatch(kind, ids, text, state)
    if problem:
        return _refuse(raw, problem, where)
    found = [state.find(bullet_id) for bullet_id in ids]
    return Operation(
        kind=kind,
        text="" if kind is OperationKind.REMOVE else text,
        section=fold(str(raw.get("section") or "")),
        bullet_ids=ids if kind is not OperationKind.ADD else (),
        seen=tuple(b.text for b in found if b) if kind is not OperationKind.ADD else (),
        origin=where,
    )


def _refuse(raw: Any, reason: str, where: str) -> SetAside:
    return SetAside(what=str(raw)[:300], reason=reason, where=where)


def _kind(raw: Raw) -> str:
    word = str(raw.get("type") or "").strip().upper()
    return _ALIASES.get(word, word)


def _problem(raw: Any) -> str:
    if not isinstance(raw, dict):
        return "not an object"
    if unknown := sorted(set(raw) - _KEYS):
        return f"unknown key {unknown[0]!r}"
    if _kind(raw) not in OperationKind.__members__:
        return f"unknown type {raw.get('type')!r}"
    if not isinstance(raw.get("from") or [], list):
        return "from is not a list of numbers"
    return ""


def _ids(raw: Raw) -> list[str]:
    many = raw.get("bullet_ids")
    listed = many if isinstance(many, list) else []
    one = [raw["bullet_id"]] if raw.get("bullet_id") else []
    return [str(i).strip().strip("[]").strip() for i in [*one, *listed]]


def _mismatch(kind: OperationKind, ids: tuple[str, ...], text: str, state: Playbook) -> str:
    if kind is not OperationKind.REMOVE and not text:
        return f"{kind} without content"
    if kind is OperationKind.ADD:
        return ""
    if unknown := [i for i in ids if state.find(i) is None]:
        return f"{kind} of {unknown[0]}, which is not in the playbook"
    if kind is OperationKind.MERGE and len(ids) < 2:
        return "MERGE needs two bullets or more"
    if kind is not OperationKind.MERGE and len(ids) != 1:
        return f"{kind} needs one bullet id"
    return ""
