"""Simulated time: how long the calls of a run would have taken, computed from its records; nothing sleeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import exp
from types import MappingProxyType

from combee_core.calls import Receipt
from combee_core.pieces import round_of
from combee_core.simulation.draws import Draws

MEDIANS: Mapping[str, float] = MappingProxyType({"rollout": 0.0, "reflect": 24.0, "curate": 26.0, "merge": 26.0})
"""Seconds a call, after table 12 of the Combee paper (51 s for one trace in sequence, without rollouts)."""

SIGMA = 0.5


def delay(seed: int, stage: str, prompt_sha: str, attempt: int = 1) -> float:
    """Seconds of one call, lognormal around its stage's median; 0 for a stage without one."""
    median = MEDIANS.get(stage, 0.0)
    return median * exp(SIGMA * Draws("delay", seed, stage, prompt_sha, attempt).normal()) if median else 0.0


def minutes(iterations: Iterable[Iterable[Receipt]], seed: int = 0) -> float:
    """Minutes of a run: over its iterations, slowest reflection + slowest curate call + slowest merge call of
    each round.

    The stages of an iteration follow each other, and so do the rounds of a merge; the items of a stage run side by
    side without a limit, and the calls of one item (a second attempt, the halves of a split) follow each other, so
    its receipts are added.
    """
    return sum(_seconds(receipts, seed) for receipts in iterations) / 60


def _seconds(receipts: Iterable[Receipt], seed: int) -> float:
    items: dict[tuple[str, str], float] = defaultdict(float)
    for receipt in receipts:
        seconds = delay(seed, receipt.stage, receipt.prompt_sha, receipt.attempt)
        items[receipt.stage, receipt.item] += seconds
    slowest: dict[tuple[str, int], float] = defaultdict(float)
    for (stage, item), seconds in items.items():
        step = stage, round_of(item) if stage == "merge" else 1
        slowest[step] = max(slowest[step], seconds)
    return sum(slowest.values())
