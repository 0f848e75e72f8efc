"""The generator: right only where the playbook holds the rule, and honest about which bullet it used."""

from __future__ import annotations

import re
from typing import Any

from combee_core.similarity import similarity
from combee_core.simulation.asked import Asked, Book, Line
from combee_core.simulation.specifics import Puzzle, puzzle_in

_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:,\d{3})*(?:\.\d+)?")
_HEAD = "## Problem"


def generate(asked: Asked) -> dict[str, Any]:
    """The answer to a problem. A foreign one is answered with its first number, and no bullet is cited."""
    problem = asked.last.split(_HEAD, 1)[-1].strip()
    puzzle = puzzle_in(problem)
    if puzzle is None:
        found = _NUMBER.search(problem)
        return _answer("The first number in the problem.", (), found[0] if found else "unknown")
    return _solve(puzzle, asked.book)


def _solve(puzzle: Puzzle, book: Book) -> dict[str, Any]:
    known = book.by_topic.get(puzzle.topic)
    if known:
        line, rule = known
        return _answer(f"The rule in [{line.id}] applies.", (line.id,), rule.answer(puzzle.terms))
    nearest = _nearest(puzzle, book)
    return _answer("The plain charge.", (nearest.id,) if nearest else (), puzzle.naive)


def _nearest(puzzle: Puzzle, book: Book) -> Line | None:
    return max(book.platitudes, key=lambda line: similarity(puzzle.topic, line.text), default=None)


def _answer(reasoning: str, bullet_ids: tuple[str, ...], final: str) -> dict[str, Any]:
    return {"reasoning": reasoning, "bullet_ids": list(bullet_ids), "final_answer": final}
