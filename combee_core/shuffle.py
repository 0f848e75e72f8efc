"""Reflections, copied, shuffled and split into groups (Combee, augmented shuffling)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from combee_core.base import content_hash
from combee_core.errors import UsageError
from combee_core.types import Group, Reflection, ShuffleMode

T = TypeVar("T")

SMALLEST = 4
"""Below this many reflections √n gives one group: one call, no copies."""


def group_count(n: int) -> int:
    """⌊√n⌋ from the number of original reflections, at least 1; 0 for none."""
    return math.isqrt(n) if n >= SMALLEST else min(n, 1)


def group_sizes(n: int, copies: int) -> tuple[int, ...]:
    """Sizes of the groups: `copies`·n dealt as evenly as possible, the larger ones first. One group holds no copies.

    Raises `UsageError` for fewer than one copy.
    """
    if copies < 1:
        raise UsageError(f"{copies} copies of a reflection are too few: 1 means that each is read once")
    k = group_count(n)
    if k <= 1:
        return (n,) * k
    size, larger = divmod(copies * n, k)
    return tuple(size + (i < larger) for i in range(k))


def batch_seed(run_seed: int, batch: int) -> int:
    """The seed of a batch's shuffle, from the run's seed and the batch's number."""
    return int(content_hash("shuffle", run_seed, batch)[:12], 16)


def deal(items: Sequence[T], copies: int, seed: int, mode: ShuffleMode = "paper") -> tuple[tuple[T, ...], ...]:
    """Groups of `items`, which must be in a fixed order.

    "paper": the list is repeated `copies` times, shuffled by `random.Random(seed)` and cut into contiguous parts;
    copies may meet in one group. "spread": copies of an item go to different groups where there are enough (p ≤ k).
    """
    sizes = group_sizes(len(items), copies)
    rng = random.Random(seed)
    if len(sizes) <= 1:
        return (tuple(items),) * len(sizes)
    if mode == "spread" and copies <= len(sizes):
        return _spread(items, copies, list(sizes), rng)
    pool = list(items) * copies
    rng.shuffle(pool)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(tuple(pool[start : start + size]) for start, size in zip(starts, sizes, strict=True))


def _spread(items: Sequence[T], copies: int, room: list[int], rng: random.Random) -> tuple[tuple[T, ...], ...]:
    # Filling the roomiest groups first always works out: it is the greedy construction of Gale and Ryser.
    groups: list[list[T]] = [[] for _ in room]
    for item in rng.sample(list(items), len(items)):
        roomiest = sorted(range(len(room)), key=lambda g: (-room[g], rng.random()))[:copies]
        for g in roomiest:
            groups[g].append(item)
            room[g] -= 1
    return tuple(map(tuple, groups))


def shuffle(
    reflections: Sequence[Reflection], copies: int, seed: int, mode: ShuffleMode = "paper"
) -> tuple[Group, ...]:
    """The groups of a batch. Reflections without an insight enter none; the input's order never matters."""
    with_insight = sorted((r for r in reflections if not r.is_nothing), key=lambda r: (r.trace_id, r.key_insight))
    dealt = deal(with_insight, copies, seed, mode)
    return tuple(Group(number=g, of=len(dealt), entries=entries) for g, entries in enumerate(dealt, start=1))


def copies_met(groups: Sequence[Group]) -> float:
    """The share of reflections of which two copies lie in one group, from 0 to 1: there the second buys nothing."""
    met, all_ids = set[str](), set[str]()
    for group in groups:
        times = Counter(entry.trace_id for entry in group.entries)
        all_ids |= times.keys()
        met |= {trace_id for trace_id, seen in times.items() if seen > 1}
    return len(met) / len(all_ids) if all_ids else 0.0
