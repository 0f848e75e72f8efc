"""From observations to points: what counts as a measurement, and what is left out with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from combee_core.sizes import Observation, Point
from combee_core.types import SetAside

ENOUGH = 3
"""Sizes that a fit needs, unless no more than two were tried."""

_CACHED = 1000
"""A delay this many times below the median was not the model's: the answers came from a cache."""

_SHORTEST, _LONGEST = 1e-15, 1e15
"""Seconds: no iteration takes so little or so much, and nothing between overflows."""


def points_of(observations: Sequence[Observation]) -> tuple[tuple[Point, ...], tuple[SetAside, ...]]:
    """A point for each size with a usable delay, smallest first, and what was left out. Order does not matter.

    Delays that are missing, not finite, zero or out of all proportion do not count, nor does one under a thousandth of
    the median. A cold one does not count beside a warm one of its size, nor where three other sizes are warm: a first
    call that pays for connections and caches would bend the curve.
    """
    whole, broken = _split(observations, _faults(observations))
    typical = median([_delay(one) for one in whole]) if whole else 0.0
    usable, cached = _split(whole, [_cache_fault(one, typical) for one in whole])
    warm = {one.batch_size for one in usable if not one.cold}
    used, cold = _split(usable, [_cold_fault(one, warm) for one in usable])
    sizes = sorted({one.batch_size for one in used})
    points = tuple(_point(size, [one for one in used if one.batch_size == size]) for size in sizes)
    left_out = sorted([*broken, *cached, *cold])
    return points, tuple(SetAside(what=f"size {size}", reason=reason) for size, reason in left_out)


def lost(profile: Sequence[int], observations: Sequence[Observation], left: int) -> tuple[int, ...]:
    """Sizes of a profile to measure once more, smallest first: those without a usable delay, where a fit lacks them.

    As many as `left` traces or samples allow. None where no size at all has a delay: then it is not one kill, but
    answers that were all there before, and they would be there again.
    """
    usable = {point.batch_size for point in points_of(observations)[0]}
    if not usable or len(usable) >= min(ENOUGH, len(set(profile))):
        return ()
    sizes = sorted(set(profile) - usable)
    return tuple(size for size, together in zip(sizes, accumulate(sizes), strict=True) if together <= left)


def _split(
    observations: Sequence[Observation], faults: Sequence[str]
) -> tuple[list[Observation], list[tuple[int, str]]]:
    pairs = list(zip(observations, faults, strict=True))
    return [one for one, fault in pairs if not fault], [(one.batch_size, fault) for one, fault in pairs if fault]


def _faults(observations: Sequence[Observation]) -> list[str]:
    return [_fault(one.batch_size, one.delay) for one in observations]


def _fault(size: int, delay: float | None) -> str:
    if size < 1:
        return "no batch has this size"
    if delay is None:
        return "no delay is known: the iteration failed, or its answers were there before"
    if delay < _SHORTEST:
        return f"a delay of {delay:g} s is no measurement: were the answers cached?"
    return "" if delay <= _LONGEST else f"a delay of {delay:g} s is no measurement"


def _cache_fault(one: Observation, typical: float) -> str:
    return "its delay is next to nothing: were the answers cached?" if _delay(one) < typical / _CACHED else ""


def _cold_fault(one: Observation, warm: set[int]) -> str:
    if one.cold and one.batch_size in warm:
        return "the first call was cold; the size was measured warm too"
    return "the first call was cold; enough other sizes were measured warm" if one.cold and len(warm) >= ENOUGH else ""


def _delay(one: Observation) -> float:
    return one.delay or 0.0


def _point(size: int, of_size: Sequence[Observation]) -> Point:
    delays = sorted(map(_delay, of_size))
    middle = median(delays)
    return Point(
        batch_size=size,
        delay=middle,
        observations=len(delays),
        spread=(delays[-1] - delays[0]) / middle,
        cold=all(one.cold for one in of_size),
    )
