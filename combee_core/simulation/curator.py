"""The curator under context overload: a nearly constant number of entries, whatever it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from combee_core.simulation.asked import Asked, Book
from combee_core.simulation.draws import Draws
from combee_core.simulation.ideas import Idea, Key, distinct, section_for
from combee_core.simulation.overload import Curve, entries
from combee_core.simulation.platitudes import platitude
from combee_core.simulation.specifics import Specific

_ENTRY = re.compile(r"^r(?P<number>\d+)\. insight: (?P<insight>.*)(?P<details>(?:\n  .*)*)", re.MULTILINE)
_TAGS = re.compile(r"^  tags: (?P<tags>.*)$", re.MULTILINE)
_NAMED = 2
"""The most entries that a platitude names."""


@dataclass(frozen=True)
class Entry:
    """One reflection of the group: its number, its insight, and the bullets that it calls harmful."""

    number: int
    insight: str
    harmful: tuple[str, ...]


def curate(asked: Asked, draws: Draws, curve: Curve) -> dict[str, Any]:
    """The operations of one group.

    Of m distinct specifics that the playbook does not hold yet, min(m, E(m)) are drawn with their
    occurrences as weights; the rest fall into one platitude.
    """
    book = asked.book
    ideas = distinct((entry.insight, entry) for entry in read_entries(asked.last))
    fresh = {key: idea for key, idea in ideas.items() if not _is_held(key, book)}
    room = draws.rounded(min(len(fresh), entries(len(fresh), curve))) if fresh else 0
    chosen = draws.choose({key: idea.weight for key, idea in fresh.items()}, room)
    operations = list(_Writer(book).write(idea for key, idea in fresh.items() if key in chosen))
    operations += _rest([idea for key, idea in fresh.items() if key not in chosen], book)
    return {"reasoning": f"{len(fresh)} new specifics, {len(chosen)} written.", "operations": operations}


def read_entries(text: str) -> Iterator[Entry]:
    """The numbered reflections of a curator's message."""
    for found in _ENTRY.finditer(text):
        tags = _TAGS.search(found["details"])
        pairs = [tag.rpartition(" ") for tag in tags["tags"].split(", ")] if tags else []
        harmful = tuple(bullet_id for bullet_id, _, tag in pairs if tag == "harmful")
        yield Entry(int(found["number"]), found["insight"], harmful)


def _is_held(key: Key, book: Book) -> bool:
    return key in book.specifics if isinstance(key, Specific) else key in book.texts


@dataclass
class _Writer:
    """Writes ideas as operations; each harmful bullet is turned into one specific only."""

    book: Book
    taken: set[str] = field(default_factory=set)

    def write(self, ideas: Iterable[Idea[Entry]]) -> Iterator[dict[str, Any]]:
        for idea in ideas:
            numbers = sorted({entry.number for entry in idea.stated_by})
            bullet = next((b for entry in idea.stated_by for b in entry.harmful if self._may_become(b, idea.key)), None)
            if bullet is None:
                section = section_for(idea.words, self.book)
                yield {"type": "ADD", "section": section, "content": idea.words, "from": numbers}
            else:
                self.taken.add(bullet)
                yield {"type": "UPDATE", "bullet_id": bullet, "content": idea.words, "from": numbers}

    def _may_become(self, bullet_id: str, key: Key) -> bool:
        """False if the bullet is gone, taken, or holds a rule on another topic, which must not be lost."""
        line = self.book.by_id.get(bullet_id)
        if line is None or bullet_id in self.taken:
            return False
        topic = key.topic if isinstance(key, Specific) else None
        return all(specific.topic == topic for specific in line.specifics)


def _rest(ideas: list[Idea[Entry]], book: Book) -> list[dict[str, Any]]:
    if not ideas:
        return []
    content = platitude(max(ideas, key=lambda idea: idea.weight).words)
    numbers = sorted({idea.stated_by[0].number for idea in ideas[:_NAMED]})
    return [{"type": "ADD", "section": section_for(content, book), "content": content, "from": numbers}]
