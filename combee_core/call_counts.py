"""How many curate and merge calls a batch takes at most, known before it starts (Combee, two-level reduce)."""

from __future__ import annotations

from collections.abc import Iterable

from combee_core.config import RunSettings
from combee_core.pieces import most_calls
from combee_core.shuffle import sizes_of


def reduce_calls(insights: Iterable[int], settings: RunSettings) -> tuple[int, int | None]:
    """Curate and merge calls at most, without splits, for batches with so many insights each.

    Merge calls are None where they depend on what the curators write: merging by clusters makes one call for each
    cluster of texts that differ, and more where a cluster is too large for one.
    """
    groups = [len(sizes_of(n, settings)) for n in insights]
    return sum(groups), _merges([k for k in groups if k > 1], settings)


def _merges(groups: list[int], settings: RunSettings) -> int | None:
    in_rounds = settings.merge == "paper" or (settings.merge == "auto" and settings.levels > 2)
    return sum(most_calls(k, settings.levels) for k in groups) if in_rounds or not groups else None
