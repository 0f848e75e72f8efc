"""How many curate and merge calls a batch takes at most, known before it starts (Combee, two-level reduce)."""

from __future__ import annotations

from collections.abc import Iterable

from combee_core.config import RunSettings
from combee_core.shuffle import sizes_of


def reduce_calls(insights: Iterable[int], settings: RunSettings) -> tuple[int, int]:
    """Curate and merge calls at most, without splits, for batches with so many insights each.

    Merging by clusters makes a call for each cluster of texts that differ; no more than one for two insights.
    """
    groups = [(n, len(sizes_of(n, settings))) for n in insights]
    merges = sum(_merges(n, k, settings) for n, k in groups)
    return sum(k for _, k in groups), merges


def _merges(n: int, groups: int, settings: RunSettings) -> int:
    if groups <= 1:
        return 0
    if settings.merge == "paper":
        return 1
    return max(1, n // 2)
