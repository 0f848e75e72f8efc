"""The nouns of the batch-size controller: what was measured, the curve through it, the choice and its reason."""

from __future__ import annotations

from typing import Literal

from combee_core.base import Noun
from combee_core.config import Peak
from combee_core.types import SetAside

Bound = Literal["plateau", "smallest candidate", "only size", "cap", "training size", "token limit", "fallback"]
"""Which rule a choice comes from."""


class Observation(Noun):
    """One measured iteration: its size in traces or samples, its delay in seconds.

    The delay is None where the iteration failed, or where answers came from the store, so that it says nothing.
    `cold` marks the first iteration of an invocation, which may have paid for connections and caches.
    """

    batch_size: int
    delay: float | None
    cold: bool = False


class Point(Noun):
    """The delay that a size is fitted with: the median of its observations, in seconds, and how many they were.

    `spread` is the range of the observations as a share of the median. `cold` where none of them was warm.
    """

    batch_size: int
    delay: float
    observations: int = 1
    spread: float = 0.0
    cold: bool = False


class Fit(Noun):
    """T = amplitude · size^-alpha, the epoch's time in seconds over the batch size (Combee, section on the controller).

    `total` is N, the training size for which T was computed. `r_squared` is that of the logarithms. `robust` where an
    outlier made least squares give way. `noise` is the share by which epoch times differ for no reason: the larger of
    the repeats' spread and the standard deviation about the curve. `smallest` is the size where the curve is steepest:
    the smallest that was tried, although its measurement may have been left out. `left_out` names measurements that
    were not used.
    """

    amplitude: float
    alpha: float
    r_squared: float
    total: int
    smallest: int
    robust: bool = False
    noise: float = 0.0
    points: tuple[Point, ...] = ()
    left_out: tuple[SetAside, ...] = ()


class Decision(Noun):
    """A batch size, and why. `plateau` is the size at which the curve's slope has fallen to `tau` of its peak.

    `points` and `left_out` are there without a fit too: what was measured of `total` traces or samples, in vain or not.
    """

    batch_size: int
    bound_by: Bound
    reason: str
    tau: float
    peak: Peak
    total: int
    plateau: float | None = None
    fit: Fit | None = None
    points: tuple[Point, ...] = ()
    left_out: tuple[SetAside, ...] = ()
