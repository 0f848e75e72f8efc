"""Distinct specifics among texts: wordings of one rule are one idea, foreign texts go by their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from combee_core.playbook_text import UNTITLED
from combee_core.simulation.asked import Book, plain
from combee_core.simulation.platitudes import is_platitude
from combee_core.simulation.specifics import Specific, stated_in

T = TypeVar("T")
Key = Specific | str


@dataclass
class Idea(Generic[T]):
    """One specific, the words in which it was first met, and everything that states it, in order."""

    key: Key
    words: str
    stated_by: list[T] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """How often it was stated."""
        return len(self.stated_by)


def distinct(texts: Iterable[tuple[str, T]]) -> dict[Key, Idea[T]]:
    """The ideas of `(text, who states it)` pairs by key, in order of first appearance."""
    ideas: dict[Key, Idea[T]] = {}
    for text, who in texts:
        for key, words in _keys(text):
            ideas.setdefault(key, Idea(key, words)).stated_by.append(who)
    return ideas


def _keys(text: str) -> Sequence[tuple[Key, str]]:
    stated = {one.specific: one.words for one in stated_in(text)}
    return list(stated.items()) or [(plain(text), text)]


def section_for(text: str, book: Book) -> str:
    """The playbook's heading that suits a text: formulas, heuristics or strategies; else its first."""
    wanted = "FORMULA" if stated_in(text) else "HEURISTIC" if is_platitude(text) else "STRATEG"
    fitting = [heading for heading in book.headings if wanted in heading.upper()]
    return (fitting or list(book.headings) or [UNTITLED])[0]
