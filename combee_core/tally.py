"""What a run's states add up to, in one pass: no two of them need to be in memory at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from combee_core.records import State, TraceFate
from combee_core.types import Conflict, OperationFate, SetAside, Survival

MOST_SET_ASIDE = 1000
"""How many different ones a result names; all of them are in the run's states."""

MOST_SHOWN = 60
"""Contradictions, and operations that were dropped, that a summary shows; of the others it has the number."""


@dataclass(frozen=True)
class Tally:
    """`single` are the batches of one group; `more_…` counts what there was besides and is not named here.

    `calls` are the parts that groups were read in, `models` those whose answers were used, `survival` is that of the
    first and of the last level of the reduce; between them batches may differ. `copies_met` is the share of a batch's
    reflections that lay twice in one group, on average; `merged` counts the operations that entered a merge by their
    fate, and `dropped` are the first of those that it dropped.
    """

    batches: int = 0
    fates: tuple[TraceFate, ...] = ()
    groups: tuple[int, ...] = ()
    single: tuple[int, ...] = ()
    calls: int = 0
    models: frozenset[str] = frozenset()
    survival: tuple[Survival, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    more_set_aside: int = 0
    copies_met: float = 0.0
    conflicts: tuple[Conflict, ...] = ()
    more_conflicts: int = 0
    merged: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[OperationFate, ...] = ()


def tally(states: Iterable[State], set_aside: Iterable[SetAside] = ()) -> Tally:
    """The sums over all states; `set_aside` is what publishing set aside after them."""
    groups, single, fates, calls = list[int](), list[int](), list[TraceFate](), 0
    models, aside, first, last = set[str](), _Aside(), None, None
    met, merged, dropped = 0.0, Counter[str](), list[OperationFate]()
    conflicts, all_conflicts = list[Conflict](), 0
    for state in states:
        groups.append(state.groups)
        single += [state.number] if state.groups == 1 else []
        fates += state.fates
        calls += state.calls
        models |= {receipt.model for receipt in state.receipts}
        if state.survival:
            first, last = _sum(first, state.survival[0]), _sum(last, state.survival[-1])
        aside.add(state.set_aside)
        met += state.copies_met
        merged.update(fate.fate for fate in state.update.fates)
        conflicts += state.update.conflicts[: MOST_SHOWN - len(conflicts)]
        all_conflicts += len(state.update.conflicts)
        dropped += islice((f for f in state.update.fates if f.fate == "dropped"), MOST_SHOWN - len(dropped))
    aside.add(set_aside)
    return Tally(
        batches=len(groups),
        fates=tuple(fates),
        groups=tuple(groups),
        single=tuple(single),
        calls=calls,
        models=frozenset(models),
        survival=tuple(dict.fromkeys(level for level in (first, last) if level)),
        set_aside=tuple(aside.named),
        more_set_aside=aside.more,
        copies_met=met / max(1, len(groups)),
        conflicts=tuple(conflicts),
        more_conflicts=all_conflicts - len(conflicts),
        merged=merged,
        dropped=tuple(dropped),
    )


class _Aside:
    """Each different one once, the first of them by name."""

    def __init__(self) -> None:
        self.named: dict[SetAside, None] = {}
        self.more = 0

    def add(self, items: Iterable[SetAside]) -> None:
        for item in items:
            if item not in self.named:
                if len(self.named) < MOST_SET_ASIDE:
                    self.named[item] = None
                else:
                    self.more += 1


def _sum(so_far: Survival | None, more: Survival) -> Survival:
    if so_far is None:
        return more
    return Survival(
        level=more.level,
        before=so_far.before + more.before,
        after=so_far.after + more.after,
        known=so_far.known + more.known,
        estimated=so_far.estimated or more.estimated,
    )
