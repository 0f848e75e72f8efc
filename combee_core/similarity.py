"""How alike two texts are: the cosine of their counts of three-letter pieces, in lower case.

Cheap, without a model, the same on every machine. It tells wordings of one fact from different facts; it
does not understand negation or numbers, so it joins texts for somebody to look at and never decides which
one is true.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

SAME = 0.75
"""At or above this cosine two texts count as alike."""

_PIECE = 3


@dataclass(frozen=True)
class Profile:
    """The counted pieces of one text and their Euclidean length."""

    counts: Counter[str]
    length: float


@lru_cache(maxsize=16_384)
def profile(text: str) -> Profile:
    """Count the pieces of `text`; a text shorter than a piece is one piece, an empty text has none."""
    lowered = text.lower()
    last = max(len(lowered) - _PIECE, 0)
    counts = Counter(lowered[at : at + _PIECE] for at in range(last + 1)) if lowered else Counter()
    return Profile(counts, sqrt(sum(count * count for count in counts.values())))


def closeness(a: Profile, b: Profile) -> float:
    """Cosine of two profiles, from 0 (nothing in common) to 1."""
    if not a.length or not b.length:
        return 0.0
    few, many = sorted((a.counts, b.counts), key=len)
    shared = sum(count * many[piece] for piece, count in few.items() if piece in many)
    return min(1.0, shared / (a.length * b.length))


def similarity(a: str, b: str) -> float:
    """Cosine of the three-letter counts of two texts, from 0 to 1; equal texts (in lower case) give 1."""
    if a.lower() == b.lower():
        return 1.0
    return closeness(profile(a), profile(b))


def plain(text: str) -> str:
    """Texts with the same plain form are one fact: spaces, a full stop and the first capital do not count.

    Other capitals do: `userId` and `userid` are two fields.
    """
    words = " ".join(unicodedata.normalize("NFC", text).split()).rstrip(".")
    return words[:1].lower() + words[1:]
