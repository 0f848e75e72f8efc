"""The forms of the merge: from all groups' operations to a plan of calls.

"paper" is one call that reads everything (Combee, Map-Shuffle-Reduce), or with more than two levels rounds of such
calls with a fan-in of k^(1/(levels − 1)). "cluster" joins in code what says the same, passes on what is like nothing
else, and makes one small call for each cluster of different texts. "auto" is the paper's form for a list that one call
can be trusted with, else clusters. Another form is a function and a line in `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from combee_core.clustering import Find
from combee_core.config import MergeForm
from combee_core.disputes import disputes
from combee_core.fates import followed, side_by_side, untouched
from combee_core.joining import Places, but_for_values, equal, joined, of_one_trace, united, wording
from combee_core.pieces import Clusters, Plan, Rounds
from combee_core.types import Conflict, Delta, Operation

ONE_CALL_UP_TO = 12
"""Up to this many operations `auto` makes the paper's one call: a small model was seen to lose few of so many."""


class Pool:
    """Operations on their way to one list, a fate for each that entered, and the contradictions that were noted.

    `find` tells which texts are alike.
    """

    def __init__(self, operations: Iterable[Operation], conflicts: Iterable[Conflict], find: Find) -> None:
        start = untouched([*operations])
        self.operations, self.fates = start.operations, start.fates
        self.conflicts = [*conflicts]
        self.find = find

    def step(self, places: Sequence[Places], deltas: Sequence[Delta]) -> Delta:
        """The operations at `places` become what `deltas` make of them; all that is done, as one delta."""
        step = side_by_side([*zip(places, deltas, strict=True)])
        self.operations, self.fates = step.operations, followed(self.fates, step)
        return step

    def join(self, piles: Sequence[Places]) -> list[int]:
        """Join each pile in code; where the operation at each place went."""
        inorder = sorted(piles)
        step = self.step(inorder, [joined([self.operations[at] for at in pile]) for pile in inorder])
        return [fate.into or 0 for fate in step.fates]

    def alike(self) -> list[list[int]]:
        """The places of what says nearly the same."""
        return self.find([wording(op) for op in self.operations])

    def near(self, alike: Sequence[Sequence[int]]) -> list[Places]:
        """What must meet; the contradictions in it are noted."""
        near = united(len(self.operations), [*alike, *but_for_values(self.operations)])
        self.conflicts += disputes(self.operations, near)
        return near


Form = Callable[[Pool, Sequence[int], int], Plan]
"""All operations, how many each group has, levels of the reduce → which calls there are to be."""


def paper(pool: Pool, bundles: Sequence[int], levels: int) -> Plan:
    """Calls that read what several groups wrote, however much it is."""
    pool.near(pool.alike())
    return Rounds.of(bundles, levels)


def cluster(pool: Pool, bundles: Sequence[int], levels: int) -> Plan:
    """What is the same is joined at once; calls read what is alike, whichever groups it came from."""
    pool.join(equal(pool.operations))
    alike = pool.alike()
    near = pool.near(alike)
    moved = pool.join(of_one_trace(pool.operations, alike))
    return Clusters([sorted({moved[at] for at in group}) for group in near], pool.find)


def auto(pool: Pool, bundles: Sequence[int], levels: int) -> Plan:
    """The paper's form while one call reads little, or where rounds are asked for."""
    small = levels > 2 or len(pool.operations) <= ONE_CALL_UP_TO
    return (paper if small else cluster)(pool, bundles, levels)


FORMS: Mapping[MergeForm, Form] = MappingProxyType({"paper": paper, "cluster": cluster, "auto": auto})
