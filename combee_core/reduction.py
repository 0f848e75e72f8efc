"""The second level of the reduce as a state machine: which merge calls are to be made now, and what comes out.

It makes no call itself, so that an orchestrator's tasks and a plain loop share it:

    reduction = Reduction(deltas, "auto")
    while parts := reduction.parts:
        reduction.take([await merge(part, n, …) for n, part in enumerate(parts, start=1)])
    merged = reduction.result()

"paper" is one call that reads everything (Combee, Map-Shuffle-Reduce), or with more than two levels rounds of such
calls with a fan-in of k^(1/(levels − 1)). "cluster" joins in code what says the same, passes on what is like nothing
else, and makes one small call for each cluster of different texts. "auto" is the paper's form for a list that one call
can be trusted with, else clusters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import ceil
from typing import Protocol, TypeVar

from combee_core.calls import Receipt
from combee_core.clustering import Embed, clusters
from combee_core.config import MergeForm
from combee_core.disputes import disputes, kept_apart, told
from combee_core.errors import UsageError
from combee_core.fates import followed, side_by_side, untouched
from combee_core.joining import MOST, Places, equal, joined, needs_a_reader, of_one_trace, together, wording
from combee_core.tfidf import vectors
from combee_core.types import Conflict, Delta, Merged, Operation, SetAside

T = TypeVar("T")


@dataclass(frozen=True)
class Piece:
    """Some operations by their places: to be read by one merge call, or to pass. `last` where the results are final."""

    places: Places
    ask: bool = False
    last: bool = True


class _Plan(Protocol):
    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
        """All operations, each in one piece, for the round that begins; without one that asks, the end."""

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        """Where the results of each piece stand now."""


class Reduction:
    """The operations of all groups on their way to one list; the order in which the groups come does not matter.

    Where one group alone proposed something there is no call. Raises `UsageError` for "cluster" with more than two
    levels, whose calls do not feed each other.
    """

    def __init__(
        self, deltas: Sequence[Delta], merge: MergeForm = "auto", levels: int = 2, embed: Embed = vectors
    ) -> None:
        if merge == "cluster" and levels > 2:
            raise UsageError(f"merge=cluster has two levels, not {levels}; merge=paper can have more")
        ordered = sorted(deltas, key=_number)
        bundles = [delta.operations for delta in ordered if delta.operations]
        start = untouched([*chain.from_iterable(bundles)])
        self._operations, self._fates = start.operations, start.fates
        self._set_aside: list[SetAside] = [item for delta in ordered for item in delta.set_aside]
        self._conflicts: list[Conflict] = [conflict for delta in ordered for conflict in delta.conflicts]
        self._receipts: list[Receipt] = []
        self._rounds: list[Delta] = []
        small = levels > 2 or len(self._operations) <= MOST
        if len(bundles) > 1 and (merge == "cluster" or (merge == "auto" and not small)):
            self._plan: _Plan = self._clustered(embed)
        else:
            self._conflicts += disputes(self._operations, self._alike(embed))
            self._plan = _Rounds.of([len(bundle) for bundle in bundles], levels)
        self._pieces = self._plan.pieces(self._operations)

    @property
    def parts(self) -> tuple[tuple[Operation, ...], ...]:
        """What the merge calls to be made now read, one tuple a call; empty when all is done."""
        return tuple(self._read(piece) for piece in self._pieces if piece.ask)

    def take(self, merged: Sequence[Merged]) -> None:
        """The answers to `parts`, in their order."""
        answers = iter(zip((piece for piece in self._pieces if piece.ask), merged, strict=True))
        taken = {piece: self._apart(piece, answer) for piece, answer in answers}
        deltas = [taken.get(piece) or untouched(self._read(piece)) for piece in self._pieces]
        self._step([piece.places for piece in self._pieces], deltas)
        self._rounds.append(self._delta())
        ends = accumulate((len(delta.operations) for delta in deltas), initial=0)
        self._plan.settle(self._pieces, [tuple(range(*span)) for span in pairwise(ends)])
        self._pieces = self._plan.pieces(self._operations)

    def result(self) -> Merged:
        """The list, with one fate for each operation that entered; what each round before the last left; all receipts.

        Raises `ValueError` while there are parts.
        """
        if self.parts:
            raise ValueError(f"{len(self.parts)} merge calls are still to be made")
        return Merged(delta=self._delta(), between=tuple(self._rounds[:-1]), receipts=tuple(self._receipts))

    def _delta(self) -> Delta:
        return Delta(
            operations=self._operations,
            set_aside=tuple(self._set_aside),
            fates=self._fates,
            conflicts=told(self._conflicts, self._fates),
        )

    def _clustered(self, embed: Embed) -> _Plan:
        self._join(equal(self._operations))
        alike = self._alike(embed)
        self._conflicts += disputes(self._operations, alike)
        moved = self._join(of_one_trace(self._operations, alike))
        return _Clusters([sorted({moved[at] for at in group}) for group in alike], embed)

    def _alike(self, embed: Embed) -> list[list[int]]:
        return clusters([wording(op) for op in self._operations], embed=embed)

    def _join(self, piles: Sequence[Places]) -> list[int]:
        """Join each pile in code; where the operation at each place went."""
        inorder = sorted(piles)
        step = self._step(inorder, [joined([self._operations[at] for at in pile]) for pile in inorder])
        return [fate.into or 0 for fate in step.fates]

    def _read(self, piece: Piece) -> tuple[Operation, ...]:
        return tuple(self._operations[at] for at in piece.places)

    def _apart(self, piece: Piece, answer: Merged) -> Delta:
        self._receipts += answer.receipts
        self._conflicts += answer.delta.conflicts
        self._set_aside += answer.delta.set_aside
        return kept_apart(self._read(piece), answer.delta, self._conflicts)

    def _step(self, places: Sequence[Places], deltas: Sequence[Delta]) -> Delta:
        step = side_by_side([*zip(places, deltas, strict=True)])
        self._operations, self._fates = step.operations, followed(self._fates, step)
        return step


@dataclass
class _Rounds:
    """Neighbouring bundles are read together, `fan_in` at a time, until one is left."""

    bundles: list[Places]
    fan_in: int

    @classmethod
    def of(cls, sizes: Sequence[int], levels: int) -> _Rounds:
        # Roots in floating point may lie a little above a whole number, which would cost a level.
        fan_in = ceil(len(sizes) ** (1 / (levels - 1)) - 1e-9)
        return cls([tuple(range(*span)) for span in pairwise(accumulate(sizes, initial=0))], max(2, fan_in))

    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
        if len(self.bundles) <= 1:
            return []
        count = -(-len(self.bundles) // self.fan_in)
        return [Piece(tuple(chain.from_iterable(some)), ask=len(some) > 1) for some in _evenly(self.bundles, count)]

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        self.bundles = [places for places in results if places]


@dataclass
class _Clusters:
    """One call a cluster, or several for a cluster that is too large for one: their results are looked at again."""

    alike: list[list[int]]
    embed: Embed
    largest: int | None = None
    open: frozenset[int] | None = None

    def pieces(self, operations: Sequence[Operation]) -> list[Piece]:
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
            found = clusters([wording(operations[at]) for at in some], embed=self.embed)
            self.alike = [[some[at] for at in group] for group in found]

    def _cut(self, places: Places) -> list[Piece]:
        count = -(-len(places) // MOST)
        if count == 1:
            return [Piece(places, ask=True)]
        near = {at: number for number, group in enumerate(self.alike) for at in group}
        ordered = sorted(places, key=lambda at: (near[at], at))
        return [Piece(tuple(sorted(part)), ask=True, last=False) for part in _evenly(ordered, count)]

    def settle(self, pieces: Sequence[Piece], results: Sequence[Places]) -> None:
        unsettled = (places for piece, places in zip(pieces, results, strict=True) if not piece.last)
        self.open = frozenset(chain.from_iterable(unsettled))


def _evenly(items: Sequence[T], count: int) -> list[Sequence[T]]:
    """`count` neighbouring parts whose sizes differ by at most one."""
    cuts = [len(items) * n // count for n in range(count + 1)]
    return [items[start:end] for start, end in pairwise(cuts)]


def _number(delta: Delta) -> tuple[list[int], str]:
    """The groups' own order, whatever order they come in: by the number in the name of the call, 2 before 10."""
    origin = delta.operations[0].origin if delta.operations else ""
    return [int(digits) for digits in re.findall(r"[0-9]+", origin)], origin
