"""How long calls will take: from the delays of the paper's table and the limits of the provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import NormalDist
from types import MappingProxyType
from typing import NamedTuple

from combee_core.config import ModelSettings

MEDIANS: Mapping[str, float] = MappingProxyType({"rollout": 24.0, "reflect": 24.0, "curate": 26.0, "merge": 26.0})
"""Seconds a call (Combee, table 12: 1,466 s for 60 reflections, 1,580 s for as many curate calls). The table has no
rollouts; they are taken to last as long as a reflection."""

SPREAD = 0.5
"""Standard deviation of a delay's logarithm: an assumption, the one that the simulated world makes."""


class Stage(NamedTuple):
    """What one stage of one batch is expected to do: calls, tokens read and written by all of them, and in how many
    rounds, one after the other, the calls are made."""

    name: str
    calls: float = 0.0
    read: float = 0.0
    written: float = 0.0
    rounds: float = 1.0

    def mixed(self, other: Stage, share: float) -> Stage:
        """Between this and `other`, of which there is that share."""
        figures = (a + (b - a) * share for a, b in zip(self[1:], other[1:], strict=True))
        return Stage(self.name, *figures)


def batch_seconds(stages: Sequence[Stage], model: ModelSettings, pace: float = 1.0, spread: float = SPREAD) -> float:
    """Seconds of a batch: its stages follow each other. `pace` is by what factor calls are slower than `MEDIANS`."""
    return sum(stage_seconds(stage, model, pace, spread) for stage in stages)


def stage_seconds(stage: Stage, model: ModelSettings, pace: float = 1.0, spread: float = SPREAD) -> float:
    """Seconds until the last call of a stage has its answer; none earlier than the limits for a minute allow.

    The calls in flight double from `concurrency` to `max_concurrency`, as long as there are so many. With a `spread`
    of 0 all calls take the same time, and a stage without queue takes one of them.
    """
    if stage.calls <= 0:
        return 0.0
    rounds = max(1.0, stage.rounds)
    each, median = stage.calls / rounds, MEDIANS[stage.name] * pace
    trips = _trips(each, _part(model.concurrency, model), _part(model.max_concurrency, model))
    mean, last = median * exp(spread**2 / 2), median * _slowest(min(each, model.max_concurrency), spread)
    return max(rounds * (mean * (trips - 1) + last), _quota_seconds(stage, model))


def _part(limit: int, model: ModelSettings) -> int:
    """This process's part, times the number of processes: of a limit, what is really used."""
    return max(1, limit // model.processes) * model.processes


def _trips(calls: float, in_flight: float, most: float) -> float:
    """How often the time of a call passes until all are answered, at least once."""
    trips = 1.0
    left, now = calls - in_flight, min(2 * in_flight, most)
    while left > 0:
        if now == most:
            return trips + left / most
        trips += min(1.0, left / now)
        left, now = left - now, min(2 * now, most)
    return trips


def _slowest(calls: float, spread: float) -> float:
    """Times the median that the slowest of so many lognormal delays takes on average (Blom's approximation)."""
    n = max(1.0, calls)
    z = NormalDist().inv_cdf((n - 0.375) / (n + 0.25))
    return exp(spread * z + spread**2 / (2 * (1 + log(n))))


def _quota_seconds(stage: Stage, model: ModelSettings) -> float:
    requests = stage.calls / model.rpm if model.rpm else 0.0
    tokens = (stage.read + stage.written) / model.tpm if model.tpm else 0.0
    # What the first minute allows is sent at once.
    return 60.0 * max(0.0, max(requests, tokens) - 1)
