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
from itertools import accumulate, chain, pairwise

from combee_core.calls import Receipt
from combee_core.clustering import Embed, clusters
from combee_core.config import MergeForm
from combee_core.disputes import disputes, kept_apart, told
from combee_core.errors import UsageError
from combee_core.fates import followed, side_by_side, untouched
from combee_core.joining import Places, but_for_values, equal, joined, of_one_trace, united, wording
from combee_core.pieces import Clusters, Piece, Plan, Rounds
from combee_core.tfidf import vectors
from combee_core.types import Conflict, Delta, Merged, Operation, SetAside

PAPER_UP_TO = 12
"""Up to this many operations `auto` makes the paper's one call: a small model was seen to lose few of so many."""


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
        small = levels > 2 or len(self._operations) <= PAPER_UP_TO
        if len(bundles) > 1 and (merge == "cluster" or (merge == "auto" and not small)):
            self._plan: Plan = self._clustered(embed)
        else:
            self._near(self._alike(embed))
            self._plan = Rounds.of([len(bundle) for bundle in bundles], levels)
        self._pieces = self._plan.pieces(self._operations)

    @property
    def parts(self) -> tuple[tuple[Operation, ...], ...]:
        """What the merge calls to be made now read, one tuple a call; empty when all is done."""
        return tuple(self._read(piece) for piece in self._pieces if piece.ask)

    def take(self, merged: Sequence[Merged]) -> None:
        """The answers to `parts`, in their order. Raises `ValueError` if they are not as many."""
        answers = list(zip((piece for piece in self._pieces if piece.ask), merged, strict=True))
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

    def _clustered(self, embed: Embed) -> Plan:
        self._join(equal(self._operations))
        alike = self._alike(embed)
        near = self._near(alike)
        moved = self._join(of_one_trace(self._operations, alike))
        return Clusters([sorted({moved[at] for at in group}) for group in near], embed)

    def _near(self, alike: Sequence[Sequence[int]]) -> list[Places]:
        """What must meet; the contradictions in it are noted."""
        near = united(len(self._operations), [*alike, *but_for_values(self._operations)])
        self._conflicts += disputes(self._operations, near)
        return near

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


def _number(delta: Delta) -> tuple[list[int], str]:
    """The groups' own order, whatever order they come in: by the number in the name of the call, 2 before 10."""
    origin = delta.operations[0].origin if delta.operations else ""
    return [int(digits) for digits in re.findall(r"[0-9]+", origin)], origin
