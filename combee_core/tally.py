"""What a run's states add up to, in one pass: no two of them need to be in memory at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from combee_core.records import State, TraceFate
from combee_core.types import SetAside, Survival

MOST_SET_ASIDE = 1000
"""How many different ones a result names; all of them are in the run's states."""


@dataclass(frozen=True)
class Tally:
    """`single` are the batches of one group; `more_set_aside` counts what was set aside and is not named here.

    `calls` are the parts that groups were read in, `models` those whose answers were used, `survival` is that of the
    first and of the last level of the reduce; between them batches may differ.
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


def tally(states: Iterable[State], set_aside: Iterable[SetAside] = ()) -> Tally:
    """The sums over all states; `set_aside` is what publishing set aside after them."""
    groups, single, fates, calls = list[int](), list[int](), list[TraceFate](), 0
    models, aside, first, last = set[str](), _Aside(), None, None
    for state in states:
        groups.append(state.groups)
        single += [state.number] if state.groups == 1 else []
        fates += state.fates
        calls += state.calls
        models |= {receipt.model for receipt in state.receipts}
        if state.survival:
            first, last = _sum(first, state.survival[0]), _sum(last, state.survival[-1])
        aside.add(state.set_aside)
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
        estimated=so_far.estimated or more.estimated,
    )
