"""Measured delays for tests of the controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from combee_core.fitting import fit
from combee_core.sizes import Fit, Observation

APPWORLD = {1: 86.0, 5: 30.0, 10: 19.0, 20: 10.0, 40: 5.0}
FORMULA = {5: 2981.0, 10: 1892.0, 25: 842.0, 50: 506.0, 100: 356.0}
FINER = {5: 2892.0, 10: 1567.0, 25: 730.0, 50: 506.0, 100: 449.0}


def seen(delays: Mapping[int, float | None], *cold: int) -> list[Observation]:
    """One observation a size; those of `cold` are marked."""
    return [Observation(batch_size=size, delay=delay, cold=size in cold) for size, delay in delays.items()]


def law(delay: Callable[[int], float], sizes: Sequence[int] = (5, 10, 20, 40, 80)) -> list[Observation]:
    """What a law of delays gives without noise."""
    return seen({size: delay(size) for size in sizes})


def epochs(times: Mapping[int, float], total: int = 500) -> list[Observation]:
    """Observations whose epochs of `total` take these times."""
    return [Observation(batch_size=size, delay=time * size / total) for size, time in times.items()]


def fitted(times: Mapping[int, float]) -> Fit:
    """The curve through times of epochs, which must exist."""
    found = fit(epochs(times, 1), 1)
    assert found
    return found
