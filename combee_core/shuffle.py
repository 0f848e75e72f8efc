"""Reflections, copied, shuffled and split into groups (Combee, augmented shuffling)."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TypeVar

from combee_core.base import content_hash
from combee_core.config import Grouping, RunSettings
from combee_core.errors import UsageError
from combee_core.types import Group, Reflection, ShuffleMode

T = TypeVar("T")

Sizes = Callable[[int, int, int], tuple[int, ...]]
"""Number of reflections, copies, most entries of a group → sizes of the groups, the larger ones first."""

SMALLEST = 4
"""Below this many reflections √n gives one group: one call, no copies."""

PAPER_UP_TO = 100
"""Up to this many reflections `auto` makes the paper's groups."""


def group_count(n: int) -> int:
    """⌊√n⌋ from the number of original reflections, at least 1; 0 for none."""
    return math.isqrt(n) if n >= SMALLEST else min(n, 1)


def group_sizes(n: int, copies: int) -> tuple[int, ...]:
    """Sizes of the paper's groups: `copies`·n dealt as evenly as possible, the larger ones first.

    One group holds no copies. Raises `UsageError` for fewer than one copy.
    """
    return _evenly(n, copies, group_count(n))


def paper_sizes(n: int, copies: int, max_group: int) -> tuple[int, ...]:
    """⌊√n⌋ groups, however large they are (Combee, section on Map-Shuffle-Reduce)."""
    return group_sizes(n, copies)


def bounded_sizes(n: int, copies: int, max_group: int) -> tuple[int, ...]:
    """As many groups as hold at most `max_group` entries each: what a call reads no longer grows with n."""
    return _evenly(n, copies, min(n, 1) if n < SMALLEST else -(-copies * n // max_group))


def auto_sizes(n: int, copies: int, max_group: int) -> tuple[int, ...]:
    """The paper's groups while they are small, bounded ones beyond."""
    return (bounded_sizes if _is_bounded("auto", n) else paper_sizes)(n, copies, max_group)


GROUPINGS: Mapping[Grouping, Sizes] = MappingProxyType(
    {"paper": paper_sizes, "bounded": bounded_sizes, "auto": auto_sizes}
)


def _evenly(n: int, copies: int, k: int) -> tuple[int, ...]:
    if copies < 1:
        raise UsageError(f"{copies} copies of a reflection are too few: 1 means that each is read once")
    if k <= 1:
        return (n,) * k
    size, larger = divmod(copies * n, k)
    return tuple(size + (i < larger) for i in range(k))


def batch_seed(run_seed: int, batch: int) -> int:
    """The seed of a batch's shuffle, from the run's seed and the batch's number."""
    return int(content_hash("shuffle", run_seed, batch)[:12], 16)


def deal(
    items: Sequence[T], sizes: Sequence[int], copies: int, seed: int, mode: ShuffleMode = "paper"
) -> tuple[tuple[T, ...], ...]:
    """Groups of these sizes out of `items`, which must be in a fixed order. One group shows each item once.

    "paper": the list is repeated `copies` times, shuffled by `random.Random(seed)` and cut into contiguous parts;
    copies may meet in one group. "spread": copies of an item go to different groups where there are enough (p ≤ k).
    """
    rng = random.Random(seed)
    if len(sizes) <= 1:
        return (tuple(items),) * len(sizes)
    if mode == "spread" and copies <= len(sizes):
        return _spread(items, copies, sizes, rng)
    pool = list(items) * copies
    rng.shuffle(pool)
    ends = accumulate(sizes)
    return tuple(tuple(pool[end - size : end]) for size, end in zip(sizes, ends, strict=True))


def _spread(items: Sequence[T], copies: int, sizes: Sequence[int], rng: random.Random) -> tuple[tuple[T, ...], ...]:
    # Filling the roomiest groups first always works out: it is the greedy construction of Gale and Ryser.
    groups: list[list[T]] = [[] for _ in sizes]
    roomy = [(-size, rng.random(), g) for g, size in enumerate(sizes)]
    heapq.heapify(roomy)
    for item in rng.sample(list(items), len(items)):
        for room, _, g in [heapq.heappop(roomy) for _ in range(copies)]:
            groups[g].append(item)
            heapq.heappush(roomy, (room + 1, rng.random(), g))
    return tuple(map(tuple, groups))


def is_bounded(settings: RunSettings, n: int) -> bool:
    """True where n reflections get bounded groups."""
    return _is_bounded(settings.grouping, n)


def _is_bounded(grouping: Grouping, n: int) -> bool:
    return grouping == "bounded" or (grouping == "auto" and n > PAPER_UP_TO)


def copies_of(settings: RunSettings, *, bounded: bool) -> int:
    """How often a reflection is dealt. Unless a number is asked for it is twice, as in the paper, and once into bounded
    groups: there, for the same number of calls, groups of half the size keep more than a second copy does."""
    return settings.copies if isinstance(settings.copies, int) else 2 - bounded


def sizes_of(n: int, settings: RunSettings) -> tuple[int, ...]:
    """Sizes of the groups that n reflections get."""
    copies = copies_of(settings, bounded=is_bounded(settings, n))
    return GROUPINGS[settings.grouping](n, copies, settings.max_group)


def shuffle(reflections: Sequence[Reflection], settings: RunSettings, seed: int) -> tuple[Group, ...]:
    """The groups of a batch. Reflections without an insight enter none; the input's order never matters.

    Bounded groups are small enough for a copy in the same group to be a loss that shows: they are always spread.
    """
    with_insight = sorted((r for r in reflections if not r.is_nothing), key=lambda r: (r.trace_id, r.key_insight))
    bounded = is_bounded(settings, len(with_insight))
    sizes, copies = sizes_of(len(with_insight), settings), copies_of(settings, bounded=bounded)
    dealt = deal(with_insight, sizes, copies, seed, "spread" if bounded else settings.shuffle)
    return tuple(Group(number=g, of=len(dealt), entries=entries) for g, entries in enumerate(dealt, start=1))


def copies_met(groups: Sequence[Group]) -> float:
    """The share of reflections of which two copies lie in one group, from 0 to 1: there the second buys nothing."""
    met, all_ids = set[str](), set[str]()
    for group in groups:
        times = Counter(entry.trace_id for entry in group.entries)
        all_ids |= times.keys()
        met |= {trace_id for trace_id, seen in times.items() if seen > 1}
    return len(met) / len(all_ids) if all_ids else 0.0
