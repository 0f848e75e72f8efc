"""An update applied to a playbook. Ids, counters and headings belong to this code, never to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from datetime import date

from combee_core.learners.ace.desk import Desk, joined, tallied, without
from combee_core.playbook import Bullet, Change, Playbook, fold
from combee_core.ports import Applied
from combee_core.types import Operation, OperationKind, SetAside, Update, Vote


def apply(playbook: Playbook, update: Update, version: int) -> Applied[Playbook]:
    """Votes first, in any order, then operations in their order. `version` is the number that new and changed bullets
    get. What no vote and no operation names stays as it is.

    A trace that a bullet has already counted is not counted again, unless its verdict is withdrawn. An operation on a
    bullet that is gone, no longer has the text it had when the operation was proposed, or was changed by a newer day
    is set aside. An ADD that repeats a bullet adds its evidence.
    """
    desk = Desk.open(playbook)
    _withdraw(desk, frozenset(update.withdrawn))
    set_aside = list(_count(desk, update.votes))
    ids = {}
    for index, op in enumerate(update.operations):
        if flaw := _flaw(desk, op) or _overtaken(desk, op, update.day):
            what = f"{' '.join([op.kind, *op.bullet_ids])}: {op.text}"
            set_aside.append(SetAside(what=what, reason=flaw, where=op.origin))
        elif ended_in := _VERBS[op.kind](desk, op.model_copy(update={"text": fold(op.text)}), version):
            ids[index] = ended_in
            desk.date(ended_in, update.day, version)
    return Applied(desk.close(), tuple(set_aside), ids)


def _withdraw(desk: Desk, traces: Set[str]) -> None:
    for bullet in list(desk.bullets.values()) if traces else ():
        if any(entry.trace_id in traces for entry in bullet.counted):
            desk.put(without(bullet, traces))


def _count(desk: Desk, votes: Iterable[Vote]) -> Iterable[SetAside]:
    cast: dict[str, list[Vote]] = {}
    for vote in sorted(votes, key=lambda v: (v.bullet_id, v.trace_id, v.tag)):
        cast.setdefault(vote.bullet_id, []).append(vote)
    for bullet_id, its in cast.items():
        if bullet_id in desk.bullets:
            desk.put(tallied(desk.bullets[bullet_id], its))
        else:
            for vote in its:
                what, where = f"tag {vote.tag} on {bullet_id}", f"reflect-{vote.trace_id}"
                yield SetAside(what=what, reason="no such bullet", where=where)


def _flaw(desk: Desk, op: Operation) -> str:
    """Why `op` cannot be applied, or nothing."""
    if op.kind is not OperationKind.REMOVE and not fold(op.text):
        return "it has no text"
    if op.kind is OperationKind.ADD:
        return ""
    wanted = len(op.bullet_ids) > 1 if op.kind is OperationKind.MERGE else len(op.bullet_ids) == 1
    if not wanted or len(set(op.bullet_ids)) < len(op.bullet_ids) or len(op.seen) != len(op.bullet_ids):
        return "it must name its bullets, each once and with the text it had"
    for bullet_id, text in zip(op.bullet_ids, op.seen, strict=True):
        if bullet_id not in desk.bullets:
            return f"the bullet {bullet_id} is gone since this was proposed"
        if desk.bullets[bullet_id].text != text:
            return f"the bullet {bullet_id} has changed since this was proposed"
    return ""


def _overtaken(desk: Desk, op: Operation, day: date | None) -> str:
    """Why an older day may not change these bullets, or nothing. The same text again is evidence, whatever its day."""
    for bullet in (desk.bullets[bullet_id] for bullet_id in op.bullet_ids):
        evidence = op.kind is OperationKind.UPDATE and fold(op.text) == bullet.text
        if day and bullet.as_of and bullet.as_of > day and not evidence:
            return f"the bullet {bullet.id} was changed by a newer day, {bullet.as_of}; {day} does not overwrite it"
    return ""


def _add(desk: Desk, op: Operation, version: int) -> str:
    if twin := desk.twin(op.text):
        return _confirm(desk, twin, op, version)
    made = Change(version=version, kind="ADD", origin=op.origin, sources=op.sources)
    bullet = Bullet(
        id=desk.new_id(section := desk.section_for(op.section)),
        text=op.text,
        sources=tuple(sorted({*op.sources})),
        created=version,
        updated=version,
        history=(made,),
    )
    desk.put(bullet, section)
    return bullet.id


def _confirm(desk: Desk, bullet: Bullet, op: Operation, version: int) -> str:
    """The same text again: only traces that the bullet does not know yet are news."""
    if not {*op.sources} <= {*bullet.sources}:
        desk.put(_changed(bullet, "EVIDENCE", op, bullet.text, version))
    return bullet.id


def _rewrite(desk: Desk, op: Operation, version: int) -> str:
    bullet = desk.bullets[op.bullet_ids[0]]
    if op.text == bullet.text:
        return _confirm(desk, bullet, op, version)
    desk.put(_changed(bullet, "UPDATE", op, op.text, version))
    return bullet.id


def _join(desk: Desk, op: Operation, version: int) -> str:
    first, *others = (desk.bullets[bullet_id] for bullet_id in op.bullet_ids)
    for other in others:
        desk.take_out(other.id)
    desk.put(_changed(joined([first, *others]), "MERGE", op, op.text, version))
    return first.id


def _remove(desk: Desk, op: Operation, version: int) -> None:
    desk.take_out(op.bullet_ids[0])


def _changed(bullet: Bullet, kind: str, op: Operation, text: str, version: int) -> Bullet:
    before = bullet.text if text != bullet.text else ""
    record = {"version": version, "kind": kind, "origin": op.origin, "sources": op.sources, "before": before}
    return bullet.model_copy(
        update={
            "text": text,
            "sources": tuple(sorted({*bullet.sources, *op.sources})),
            "updated": version,
            "history": (*bullet.history, Change.model_validate(record)),
        }
    )


_VERBS: dict[OperationKind, Callable[[Desk, Operation, int], str | None]] = {
    OperationKind.ADD: _add,
    OperationKind.UPDATE: _rewrite,
    OperationKind.MERGE: _join,
    OperationKind.REMOVE: _remove,
}
