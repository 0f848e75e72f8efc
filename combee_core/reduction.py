"""The second level of the reduce as a state machine: which merge calls are to be made now, and what comes out.

It makes no call itself, so that an orchestrator's tasks and a plain loop share it:

    reduction = Reduction(deltas, "auto")
    while parts := reduction.parts:
        reduction.take([await merge(part, name, …) for name, part in parts])
    merged = reduction.result()

Which calls there are is the affair of `forms`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, chain, count, pairwise

from combee_core.calls import Receipt
from combee_core.clustering import ALIKE, Embed, clusters
from combee_core.config import MergeForm
from combee_core.disputes import kept_apart, told
from combee_core.errors import UsageError
from combee_core.fates import untouched
from combee_core.forms import FORMS, Pool, paper
from combee_core.pieces import Piece, call_name
from combee_core.tfidf import vectors
from combee_core.types import Delta, Merged, Operation, SetAside

Part = tuple[str, tuple[Operation, ...]]
"""What one merge call reads, and the call's name, which no other of the batch has."""


class Reduction:
    """The operations of all groups on their way to one list; the order in which the groups come does not matter.

    Where one group alone proposed something there is no call. Texts are alike by the cosine of what `embed` makes of
    them, from `alike` on. Raises `UsageError` for "cluster" with more than two levels, whose calls do not feed each
    other, and what `embed` raises.
    """

    def __init__(
        self,
        deltas: Sequence[Delta],
        merge: MergeForm = "auto",
        levels: int = 2,
        embed: Embed = vectors,
        alike: float = ALIKE,
    ) -> None:
        if merge == "cluster" and levels > 2:
            raise UsageError(f"merge=cluster has two levels, not {levels}; merge=paper can have more")
        ordered = sorted(deltas, key=_number)
        bundles = [delta.operations for delta in ordered if delta.operations]
        conflicts = chain.from_iterable(delta.conflicts for delta in ordered)
        self._pool = Pool(chain.from_iterable(bundles), conflicts, partial(clusters, alike=alike, embed=embed))
        self._set_aside: list[SetAside] = [item for delta in ordered for item in delta.set_aside]
        self._receipts: list[Receipt] = []
        self._rounds: list[Delta] = []
        self._asked = 0
        form = FORMS[merge] if len(bundles) > 1 else paper
        self._plan = form(self._pool, [len(bundle) for bundle in bundles], levels)
        self._pieces = self._plan.pieces(self._pool.operations)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the merge calls to be made now read, one part a call; empty when all is done."""
        numbered = zip(count(self._asked + 1), (piece for piece in self._pieces if piece.ask), strict=False)
        return tuple((call_name(number, len(self._rounds) + 1), self._read(piece)) for number, piece in numbered)

    def take(self, merged: Sequence[Merged]) -> None:
        """The answers to `parts`, in their order. Raises `ValueError` if they are not as many."""
        answers = list(zip((piece for piece in self._pieces if piece.ask), merged, strict=True))
        taken = {piece: self._apart(piece, answer) for piece, answer in answers}
        deltas = [taken.get(piece) or untouched(self._read(piece)) for piece in self._pieces]
        self._pool.step([piece.places for piece in self._pieces], deltas)
        self._rounds.append(self._delta())
        self._asked += len(answers)
        ends = accumulate((len(delta.operations) for delta in deltas), initial=0)
        self._plan.settle(self._pieces, [tuple(range(*span)) for span in pairwise(ends)])
        self._pieces = self._plan.pieces(self._pool.operations)

    def result(self) -> Merged:
        """The list, with one fate for each operation that entered; what each round before the last left; all receipts.

        Raises `ValueError` while there are parts.
        """
        if self.parts:
            raise ValueError(f"{len(self.parts)} merge calls are still to be made")
        return Merged(delta=self._delta(), between=tuple(self._rounds[:-1]), receipts=tuple(self._receipts))

    def _delta(self) -> Delta:
        return Delta(
            operations=self._pool.operations,
            set_aside=tuple(self._set_aside),
            fates=self._pool.fates,
            conflicts=told(self._pool.conflicts, self._pool.fates),
        )

    def _read(self, piece: Piece) -> tuple[Operation, ...]:
        return tuple(self._pool.operations[at] for at in piece.places)

    def _apart(self, piece: Piece, answer: Merged) -> Delta:
        self._receipts += answer.receipts
        self._pool.conflicts += answer.delta.conflicts
        self._set_aside += answer.delta.set_aside
        return kept_apart(self._read(piece), answer.delta, self._pool.conflicts)


def _number(delta: Delta) -> tuple[list[int], str]:
    """The groups' own order, whatever order they come in: by the number in the name of the call, 2 before 10."""
    origin = delta.operations[0].origin if delta.operations else ""
    return [int(digits) for digits in re.findall(r"[0-9]+", origin)], origin
