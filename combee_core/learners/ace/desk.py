"""A playbook taken apart, so that an operation costs a look-up and not a scan; and the counters of bullets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import date

from combee_core.learners.ace.sections import find_section, others, slug
from combee_core.playbook import Bullet, Counted, Playbook, Section
from combee_core.similarity import plain
from combee_core.types import Vote


@dataclass
class Desk:
    """Sections by number, since names may repeat; bullets by id, in their order; ids by plain text."""

    next_id: int
    names: list[str]
    bullets: dict[str, Bullet]
    place: dict[str, int]
    by_text: dict[str, list[str]] = field(default_factory=dict)
    meant: dict[str, int] = field(default_factory=dict)
    slugs: dict[int, str] = field(default_factory=dict)

    @classmethod
    def open(cls, playbook: Playbook) -> Desk:
        """Take a playbook apart."""
        sections = list(enumerate(playbook.sections))
        desk = cls(
            next_id=playbook.next_id,
            names=[section.name for _, section in sections],
            bullets={bullet.id: bullet for bullet in playbook.bullets},
            place={bullet.id: number for number, section in sections for bullet in section.bullets},
        )
        for bullet in playbook.bullets:
            desk.by_text.setdefault(plain(bullet.text), []).append(bullet.id)
        return desk

    def close(self) -> Playbook:
        """Put it together again."""
        shelves: list[list[Bullet]] = [[] for _ in self.names]
        for bullet in self.bullets.values():
            shelves[self.place[bullet.id]].append(bullet)
        sections = (Section(name=n, bullets=tuple(b)) for n, b in zip(self.names, shelves, strict=True))
        return Playbook(sections=tuple(sections), next_id=self.next_id)

    def twin(self, text: str) -> Bullet | None:
        """The first bullet that says the same in the same words, or None."""
        ids = self.by_text.get(plain(text))
        return self.bullets[ids[0]] if ids else None

    def section_for(self, wanted: str) -> int:
        """The number of the section that is meant, else of `OTHERS`, which is made where there is none."""
        if wanted not in self.meant:
            name = find_section(self.names, wanted) or others(self.names)
            if name not in self.names:
                self.names.append(name)
            self.meant[wanted] = self.names.index(name)
        return self.meant[wanted]

    def new_id(self, section: int) -> str:
        """An id that no bullet has had."""
        if section not in self.slugs:
            self.slugs[section] = slug(self.names[section], (i for i, at in self.place.items() if at == section))
        while (made := f"{self.slugs[section]}-{self.next_id:05d}") in self.bullets:
            self.next_id += 1
        self.next_id += 1
        return made

    def put(self, bullet: Bullet, section: int | None = None) -> None:
        """Lay down a new bullet in `section`, or another state of one in its place."""
        old = self.bullets.get(bullet.id)
        if old and old.text != bullet.text:
            self._forget(old)
        if old is None or old.text != bullet.text:
            self.by_text.setdefault(plain(bullet.text), []).append(bullet.id)
        self.bullets[bullet.id] = bullet
        if section is not None:
            self.place[bullet.id] = section

    def date(self, bullet_id: str, day: date | None, version: int) -> None:
        """Note the day of a change that `version` made to a bullet; an older day than is known changes nothing."""
        bullet = self.bullets[bullet_id]
        if day and bullet.updated == version and (bullet.as_of is None or bullet.as_of < day):
            self.bullets[bullet_id] = bullet.model_copy(update={"as_of": day})

    def take_out(self, bullet_id: str) -> None:
        """Remove a bullet; its id stays used."""
        self._forget(self.bullets.pop(bullet_id))
        del self.place[bullet_id]

    def _forget(self, bullet: Bullet) -> None:
        same = self.by_text[plain(bullet.text)]
        same.remove(bullet.id)
        if not same:
            del self.by_text[plain(bullet.text)]


def tallied(bullet: Bullet, votes: Iterable[Vote]) -> Bullet:
    """The bullet after `votes`: each trace counts once, whatever was counted before; harmful outweighs helpful."""
    before = {entry.trace_id for entry in bullet.counted}
    new: dict[str, Counted] = {}
    for vote in sorted(votes, key=lambda v: v.tag):
        if vote.trace_id not in before:
            new.setdefault(vote.trace_id, Counted(trace_id=vote.trace_id, tag=vote.tag))
    if not new:
        return bullet
    return bullet.model_copy(
        update={
            "helpful": bullet.helpful + _of("helpful", new.values()),
            "harmful": bullet.harmful + _of("harmful", new.values()),
            "counted": _in_order([*bullet.counted, *new.values()]),
        }
    )


def without(bullet: Bullet, traces: Set[str]) -> Bullet:
    """The bullet without the verdicts of these traces."""
    gone = [entry for entry in bullet.counted if entry.trace_id in traces]
    return bullet.model_copy(
        update={
            "helpful": max(0, bullet.helpful - _of("helpful", gone)),
            "harmful": max(0, bullet.harmful - _of("harmful", gone)),
            "counted": tuple(entry for entry in bullet.counted if entry.trace_id not in traces),
        }
    )


def joined(bullets: Sequence[Bullet]) -> Bullet:
    """Several bullets as the first one: counters added (a trace that judged two of them counts once, harmful before
    helpful), sources and histories put together."""
    entries = [entry for bullet in bullets for entry in bullet.counted]
    once: dict[str, Counted] = {}
    for entry in sorted(entries, key=lambda e: e.tag):
        once.setdefault(entry.trace_id, entry)
    helpful = _of("helpful", once.values()) - _of("helpful", entries)
    harmful = _of("harmful", once.values()) - _of("harmful", entries)
    return bullets[0].model_copy(
        update={
            "helpful": max(0, helpful + sum(bullet.helpful for bullet in bullets)),
            "harmful": max(0, harmful + sum(bullet.harmful for bullet in bullets)),
            "sources": tuple(sorted({source for bullet in bullets for source in bullet.sources})),
            "counted": _in_order(once.values()),
            "as_of": max((bullet.as_of for bullet in bullets if bullet.as_of), default=None),
            "history": tuple(change for bullet in bullets for change in bullet.history),
        }
    )


def _of(tag: str, entries: Iterable[Counted]) -> int:
    return sum(entry.tag == tag for entry in entries)


def _in_order(entries: Iterable[Counted]) -> tuple[Counted, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.trace_id))
