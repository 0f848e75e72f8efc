"""Which operations each merge call of a round reads, and the call's name: plain rounds of neighbours, or one call a
cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import ceil
from typing import Protocol, TypeVar

from combee_core.clustering import Find
from combee_core.joining import Places, needs_a_reader, together, wording
from combee_core.types import Operation

MOST = 12
"""Operations of a cluster that one call reads."""

T = TypeVar("T")


def call_name(number: int, round_number: int = 1) -> str:
    """What a merge call is called: `merge-m03`, or `merge-r2-m07` in a later round; `number` goes on through all."""
    return f"merge-{f'r{round_number}-' if round_number > 1 else ''}m{number:02d}"


def round_of(name: str) -> int:
    """The round that a merge call belongs to, from its name."""
    found = re.fullmatch(r"merge-r([0-9]+)-m[0-9]+", name)
    return int(found[1]) if found else 1


@dataclass(frozen=True)
class Piece:
    """Some operations by their places: to be read by one merge call, or to pass. `last` where the results are final."""

    places: Places
    ask: bool = False
    last: bool = True


class Plan(Protocol):
    """Cuts each round's operations into pieces."""

    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
        """All operations, each in one piece, for the round that begins; without one that asks, the end."""

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        """Where the results of each piece stand now."""


@dataclass
class Rounds:
    """Neighbouring bundles are read together, `fan_in` at a time, until one is left."""

    bundles: list[Places]
    fan_in: int

    @classmethod
    def of(cls, sizes: Sequence[int], levels: int) -> Rounds:
        """Rounds for bundles of these sizes: one less than there are levels."""
        # Roots in floating point may lie a little above a whole number, which would cost a level.
        fan_in = ceil(len(sizes) ** (1 / (levels - 1)) - 1e-9)
        return cls([tuple(range(*span)) for span in pairwise(accumulate(sizes, initial=0))], max(2, fan_in))

    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
        """One piece for each `fan_in` bundles; a bundle that is left over passes."""
        if len(self.bundles) <= 1:
            return []
        count = -(-len(self.bundles) // self.fan_in)
        return [Piece(tuple(chain.from_iterable(some)), ask=len(some) > 1) for some in _evenly(self.bundles, count)]

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        """What a call wrote is a bundle of the next round."""
        self.bundles = [places for places in results if places]


def most_calls(bundles: int, levels: int) -> int:
    """Calls that `Rounds` takes at most for so many bundles, some of which may come to be empty."""
    # With fewer bundles the fan-in is smaller too, and the rounds may be more: 8 take 7 calls on four levels, 9 take 4.
    return max((_calls(count, levels) for count in range(2 if levels > 2 else bundles, bundles + 1)), default=0)


def _calls(bundles: int, levels: int) -> int:
    rounds, calls = Rounds.of([1] * bundles, levels), 0
    while pieces := rounds.pieces(()):
        calls += sum(piece.ask for piece in pieces)
        rounds.settle(pieces, [(0,)] * len(pieces))
    return calls


@dataclass
class Clusters:
    """One call a cluster, or several for a cluster that is too large for one: their results are looked at again."""

    alike: list[list[int]]
    find: Find
    largest: int | None = None
    open: frozenset[int] | None = None

    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
        """One piece for each cluster that needs a reader, or several; none if calls no longer make clusters smaller."""
        self._look(operations)
        found = [
            places
            for places in together(operations, self.alike)
            if (self.open is None or places[0] in self.open) and needs_a_reader([operations[at] for at in places])
        ]
        largest = max(map(len, found), default=0)
        if not largest or (self.largest is not None and largest >= self.largest):
            return []
        self.largest = largest
        pieces = [piece for places in found for piece in self._cut(places)]
        asked = {at for piece in pieces for at in piece.places}
        pieces += [Piece((at,)) for at in range(len(operations)) if at not in asked]
        return sorted(pieces, key=lambda piece: piece.places)

    def _look(self, operations: Sequence[Operation]) -> None:
        """Find out what of the open operations is alike now; in the first round that is known."""
        if self.open is not None:
            some = sorted(self.open)
            found = self.find([wording(operations[at]) for at in some])
            self.alike = [[some[at] for at in group] for group in found]

    def _cut(self, places: Places) -> list[Piece]:
        count = -(-len(places) // MOST)
        if count == 1:
            return [Piece(places, ask=True)]
        near = {at: number for number, group in enumerate(self.alike) for at in group}
        ordered = sorted(places, key=lambda at: (near[at], at))
        return [Piece(tuple(sorted(part)), ask=True, last=False) for part in _evenly(ordered, count)]

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        """What came of a part of a cluster stays open."""
        unsettled = (places for piece, places in zip(pieces, results, strict=True) if not piece.last)
        self.open = frozenset(chain.from_iterable(unsettled))


def _evenly(items: Sequence[T], count: int) -> list[Sequence[T]]:
    """`count` neighbouring parts whose sizes differ by at most one."""
    cuts = [len(items) * n // count for n in range(count + 1)]
    return [items[start:end] for start, end in pairwise(cuts)]
