"""The reduce of one batch before there is anything to reduce: which calls are to be expected, and what they read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from combee_core.config import RunSettings
from combee_core.experience import Experience
from combee_core.forms import ONE_CALL_UP_TO
from combee_core.pace import Stage
from combee_core.pieces import most_calls
from combee_core.shuffle import sizes_of
from combee_core.simulation.overload import entries, merged

_IN_A_CLUSTER = 2.2
"""Operations that a cluster's call reads, and `_OUT_OF_IT` those that it writes: as measured in the simulated world."""

_OUT_OF_IT = 1.8


class Reduce(NamedTuple):
    """Both levels, and how many curate calls there are more than groups."""

    curate: Stage
    merge: Stage
    split: float = 0.0


@dataclass(frozen=True)
class Weights:
    """What the calls of one batch weigh, as in `estimate.Basis`; `bullets` as they are in this batch."""

    settings: RunSettings
    experience: Experience
    fixed: Mapping[str, int]
    bullets: float
    limit: int | None

    def around(self, stage: str) -> float:
        """Tokens of a prompt without its evidence."""
        return self.fixed.get(stage, 0) + self.bullets

    def calls(self, stage: str, items: float, each: float) -> int:
        """Calls for so many items of one prompt, halved until they fit (as `ask_in_parts` halves them)."""
        return _halves(math.ceil(items), max(1.0, room(self.limit, self.around(stage)) / each))


def room(limit: int | None, around: float) -> float:
    """Tokens that a call has left for its evidence."""
    return math.inf if limit is None else limit - around


def _halves(items: int, most: float) -> int:
    if items <= most:
        return 1
    return _halves((items + 1) // 2, most) + _halves(items // 2, most)


def expected_reduce(insights: float, weights: Weights) -> Reduce:
    """For a number of insights that may lie between two whole ones: a share of each."""
    below = math.floor(insights)
    share = insights - below
    one = _reduce(below, weights)
    if not share:
        return one
    other = _reduce(below + 1, weights)
    split = one.split + (other.split - one.split) * share
    return Reduce(one.curate.mixed(other.curate, share), one.merge.mixed(other.merge, share), split)


def _reduce(n: int, weights: Weights) -> Reduce:
    entry, operation = weights.experience.entry, weights.experience.operation
    sizes = sizes_of(n, weights.settings)
    calls = sum(weights.calls("curate", size, entry) for size in sizes)
    operations = operations_of(sum(sizes), calls)
    curate = Stage("curate", calls, calls * weights.around("curate") + sum(sizes) * entry, operations * operation)
    return Reduce(curate, _merge(n, len(sizes), operations, weights), calls - len(sizes))


def operations_of(entered: float, calls: float) -> float:
    """Operations that so many curate calls write when they read so many entries in all (Combee, figure 2)."""
    each = entered / calls if calls else 0.0
    return calls * min(each, entries(max(1.0, each)))


def _merge(n: int, groups: int, operations: float, weights: Weights) -> Stage:
    """The merge of what the groups wrote; one group needs none."""
    settings, operation = weights.settings, weights.experience.operation
    if groups <= 1:
        return Stage("merge")
    by_cluster = settings.merge == "cluster" or (
        settings.merge == "auto" and settings.levels == 2 and operations > ONE_CALL_UP_TO
    )
    if by_cluster:
        calls = weights.experience.merges * n
        read, written = _IN_A_CLUSTER * operation, _OUT_OF_IT * operation
        return Stage("merge", calls, calls * (weights.around("merge") + read), calls * written)
    rounds = settings.levels - 1
    calls = most_calls(groups, settings.levels) - 1 + weights.calls("merge", operations, operation)
    read = calls * weights.around("merge") + rounds * operations * operation
    return Stage("merge", calls, read, rounds * merged(operations) * operation, rounds)
