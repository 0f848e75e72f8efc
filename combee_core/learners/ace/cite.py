"""Which evidence a text rests on. Code decides; a model only points at numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from combee_core.similarity import SAME, similarity

K = TypeVar("K", bound=Hashable)

CROWD = 4
"""From this many distinct pieces on, a claim on all of them must be backed by each."""
_NEAR = 0.9
_MOST = 3
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Evidence(NamedTuple, Generic[K]):
    """What can be cited: whose it is (copies share it) and what it says."""

    key: K
    words: str


class Citation(NamedTuple, Generic[K]):
    """Keys in the order of the evidence; `inferred` when the model did not name exactly these."""

    keys: tuple[K, ...]
    inferred: bool


def cite(text: str, named: Iterable[K], shown: Sequence[Evidence[K]]) -> Citation[K]:
    """What stands behind `text`: what was named, unless that was nothing or the whole of a crowd.

    A claim on all of four or more stands only if each states the specific; else, and where nothing was named, those
    that do or the most similar ones are taken and marked. Copies count once.
    """
    claimed, everyone = set(named), {piece.key for piece in shown}
    if not claimed:
        return Citation(_most_similar(text, shown), inferred=True)
    if len(claimed) < CROWD or claimed != everyone:
        return Citation(_in_order(claimed, shown), inferred=False)
    backing = {piece.key for piece in shown if states(piece.words, text)}
    if backing == everyone:
        return Citation(_in_order(claimed, shown), inferred=False)
    return Citation(_in_order(backing, shown) or _most_similar(text, shown), inferred=True)


def states(words: str, text: str) -> bool:
    """True if `words` say what `text` says: they hold it, or are alike and have all its numbers."""
    if not text.strip():
        return False
    if text.lower() in words.lower():
        return True
    numbers = set(_NUMBER.findall(text))
    return numbers <= set(_NUMBER.findall(words)) and similarity(words, text) >= SAME


def _most_similar(text: str, shown: Sequence[Evidence[K]]) -> tuple[K, ...]:
    score: dict[K, float] = {}
    for piece in shown:
        score[piece.key] = max(score.get(piece.key, 0.0), similarity(piece.words, text))
    best = max(score.values(), default=0.0)
    near = sorted((key for key in score if score[key] >= _NEAR * best), key=lambda key: -score[key])
    return _in_order(near[:_MOST], shown)


def _in_order(keys: Iterable[K], shown: Sequence[Evidence[K]]) -> tuple[K, ...]:
    wanted = set(keys)
    return tuple(key for key in dict.fromkeys(piece.key for piece in shown) if key in wanted)
