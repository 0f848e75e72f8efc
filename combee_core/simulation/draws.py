"""Randomness without a stream: a draw is a hash of what it is for, so that order changes nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import floor, log
from statistics import NormalDist
from typing import Any, TypeVar

from combee_core.base import content_hash

K = TypeVar("K", bound=Hashable)

_BITS = 53


class Draws:
    """Draws that belong to one call: `Draws(seed, stage, prompt_text)`. Each label has one fixed value."""

    def __init__(self, *root: Any) -> None:
        self._root = content_hash(*root)

    def uniform(self, *label: Any) -> float:
        """A number strictly between 0 and 1."""
        digest = int(content_hash(self._root, *label)[:16], 16)
        return ((digest >> (64 - _BITS)) + 0.5) / (1 << _BITS)

    def normal(self, *label: Any) -> float:
        """A draw from the standard normal distribution."""
        return NormalDist().inv_cdf(self.uniform("normal", *label))

    def below(self, count: int, *label: Any) -> int:
        """A whole number from 0 to `count` - 1."""
        return min(int(self.uniform(*label) * count), count - 1)

    def rounded(self, amount: float, *label: Any) -> int:
        """`amount`, rounded up with the probability of its fraction: 2.35 is 3 in 35 of 100 calls."""
        whole = floor(amount)
        return whole + int(self.uniform("fraction", *label) < amount - whole)

    def choose(self, weights: Mapping[K, int], count: int) -> frozenset[K]:
        """`count` keys without replacement, by their weights (Efraimidis and Spirakis, 2006)."""
        finish = {key: -log(self.uniform("choose", repr(key))) / weight for key, weight in weights.items()}
        return frozenset(sorted(finish, key=finish.__getitem__)[:count])
