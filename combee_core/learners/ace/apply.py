"""An update applied to a playbook. Ids, counters and headings belong to this code, never to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from combee_core.learners.ace.sections import find_section, slug
from combee_core.playbook import Bullet, Change, Counted, Playbook, Section
from combee_core.ports import Applied
from combee_core.types import Operation, OperationKind, SetAside, Update, Vote


def apply(playbook: Playbook, update: Update, version: int) -> Applied[Playbook]:
    """Votes first, then operations in their order. `version` is the number that new and changed bullets get.

    A vote that a bullet has already counted is not counted again. An operation on a bullet that is gone or no longer
    has the text it had when the operation was proposed is set aside. An ADD that repeats a bullet adds its evidence.
    """
    desk = _Desk.open(playbook, version)
    for vote in update.votes:
        desk.count(vote)
    ids = {}
    for index, op in enumerate(update.operations):
        ended_in = desk.operate(op)
        if ended_in:
            ids[index] = ended_in
    return Applied(desk.close(), tuple(desk.set_aside), ids)


@dataclass
class _Desk:
    """The playbook taken apart, so that one operation costs one look-up."""

    version: int
    next_id: int
    names: list[str]
    bullets: dict[str, Bullet]
    place: dict[str, str]
    by_text: dict[str, str]
    set_aside: list[SetAside] = field(default_factory=list)

    @classmethod
    def open(cls, playbook: Playbook, version: int) -> _Desk:
        return cls(
            version=version,
            next_id=playbook.next_id,
            names=list(dict.fromkeys(section.name for section in playbook.sections)),
            bullets={b.id: b for b in playbook.bullets},
            place={b.id: section.name for section in playbook.sections for b in section.bullets},
            by_text={_plain(b.text): b.id for b in playbook.bullets},
        )

    def close(self) -> Playbook:
        return Playbook(sections=tuple(map(self._section, self.names)), next_id=self.next_id)

    def _section(self, name: str) -> Section:
        return Section(name=name, bullets=tuple(b for i, b in self.bullets.items() if self.place[i] == name))

    def count(self, vote: Vote) -> None:
        bullet = self.bullets.get(vote.bullet_id)
        if bullet is None:
            self._refuse(f"tag {vote.tag} on {vote.bullet_id}", "no such bullet", f"reflect-{vote.trace_id}")
        elif all(counted.trace_id != vote.trace_id for counted in bullet.counted):
            counted = (*bullet.counted, Counted(trace_id=vote.trace_id, tag=vote.tag))
            tally = getattr(bullet, vote.tag) + 1
            self.bullets[bullet.id] = bullet.model_copy(
                update={vote.tag: tally, "counted": tuple(sorted(counted, key=lambda c: c.trace_id))}
            )

    def operate(self, op: Operation) -> str | None:
        """Apply one operation; the id of the bullet it ended in, or None."""
        stale = next((i for i, text in zip(op.bullet_ids, op.seen, strict=True) if not self._still(i, text)), None)
        if stale:
            state = "has changed" if stale in self.bullets else "is gone"
            self._refuse(f"{op.kind} {stale}: {op.text}", f"the bullet {state} since this was proposed", op.origin)
            return None
        verbs: dict[OperationKind, Callable[[Operation], str | None]] = {
            OperationKind.ADD: self._add,
            OperationKind.UPDATE: self._rewrite,
            OperationKind.MERGE: self._join,
            OperationKind.REMOVE: self._remove,
        }
        return verbs[op.kind](op)

    def _still(self, bullet_id: str, text: str) -> bool:
        return bullet_id in self.bullets and self.bullets[bullet_id].text == text

    def _refuse(self, what: str, reason: str, where: str) -> None:
        self.set_aside.append(SetAside(what=what, reason=reason, where=where))

    def _add(self, op: Operation) -> str:
        twin = self.by_text.get(_plain(op.text))
        if twin:
            self._change(self.bullets[twin], "EVIDENCE", op, self.bullets[twin].text)
            return twin
        name = find_section(Playbook(sections=tuple(Section(name=n) for n in self.names)), op.section)
        if name not in self.names:
            self.names.append(name)
        bullet_id = f"{slug(self._section(name))}-{self.next_id:05d}"
        self.next_id += 1
        change = Change(version=self.version, kind="ADD", origin=op.origin, sources=op.sources)
        self.bullets[bullet_id] = Bullet(
            id=bullet_id,
            text=op.text,
            sources=tuple(sorted(set(op.sources))),
            created=self.version,
            updated=self.version,
            history=(change,),
        )
        self.place[bullet_id] = name
        self.by_text[_plain(op.text)] = bullet_id
        return bullet_id

    def _rewrite(self, op: Operation) -> str:
        bullet = self.bullets[op.bullet_ids[0]]
        self._change(bullet, "UPDATE", op, op.text)
        return bullet.id

    def _change(self, bullet: Bullet, kind: str, op: Operation, text: str) -> None:
        before = bullet.text if text != bullet.text else ""
        change = Change.model_validate(
            {"version": self.version, "kind": kind, "origin": op.origin, "sources": op.sources, "before": before}
        )
        self.by_text.pop(_plain(bullet.text), None)
        self.by_text[_plain(text)] = bullet.id
        self.bullets[bullet.id] = bullet.model_copy(
            update={
                "text": text,
                "sources": tuple(sorted({*bullet.sources, *op.sources})),
                "updated": self.version,
                "history": (*bullet.history, change),
            }
        )

    def _join(self, op: Operation) -> str:
        first, *others = (self.bullets[i] for i in op.bullet_ids)
        counted = {c.trace_id: c for b in (*others, first) for c in b.counted}
        joined = first.model_copy(
            update={
                "helpful": sum(b.helpful for b in (first, *others)),
                "harmful": sum(b.harmful for b in (first, *others)),
                "sources": tuple(sorted({s for b in (first, *others) for s in b.sources})),
                "counted": tuple(counted[t] for t in sorted(counted)),
                "history": tuple(h for b in (first, *others) for h in b.history),
            }
        )
        for other in others:
            self._take_out(other)
        self._change(joined, "MERGE", op, op.text)
        return first.id

    def _remove(self, op: Operation) -> None:
        self._take_out(self.bullets[op.bullet_ids[0]])

    def _take_out(self, bullet: Bullet) -> None:
        del self.bullets[bullet.id], self.place[bullet.id]
        self.by_text.pop(_plain(bullet.text), None)


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
