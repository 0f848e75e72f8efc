"""The curve of the batch-size controller: T(size) = delay · N / size, fitted as A · size^-alpha.

Source: Combee, the section on the dynamic batch-size controller. Everything is computed in logarithms, so that no
delay, however large or small, overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, linear_regression, median

from combee_core.config import Peak
from combee_core.measuring import ENOUGH, points_of
from combee_core.sizes import Fit, Observation, Point
from combee_core.types import SetAside

_FEWEST_FOR_OUTLIERS = 4
_OUTLIER = 3.5
_OFF = math.log(2)
"""An outlier is 3.5 robust standard deviations off the line, and off by a factor of two: real curves bend somewhat."""

TIE = 1 + 1e-9
"""Ties must not hang on the unit of time, whose rounding is in the last digits."""

_MAD = 1.4826
"""Makes a median of absolute deviations a standard deviation."""

_STEEPEST = 20.0
"""Largest alpha: a higher power is noise between two sizes that lie close together, and would overflow."""

_FLAT = 1e-20
"""Sum of squares that is rounding alone."""

_LARGEST = 700.0
"""Exponents beyond which a float overflows."""


def fit(observations: Sequence[Observation], total: int) -> Fit | None:
    """The curve through the medians of each size, for an epoch of `total` traces or samples.

    Least squares on logarithms; repeated medians (Siegel 1982) where a point of four or more lies far off. None where
    fewer than three sizes are usable, or two where no more were tried. Never raises, whatever the delays are.
    """
    points, left_out = points_of(observations)
    tried = {one.batch_size for one in observations if one.batch_size >= 1}
    return fit_points(points, left_out, tried, total)


def fit_points(points: Sequence[Point], left_out: Sequence[SetAside], tried: set[int], total: int) -> Fit | None:
    """`fit` for what `points_of` gives; `tried` are all sizes that were measured, in vain or not."""
    if len(points) < max(2, min(ENOUGH, len(tried))):
        return None
    total = max(total, 1)
    x = [math.log(point.batch_size) for point in points]
    y = [math.log(point.delay) + math.log(total) - log for point, log in zip(points, x, strict=True)]
    slope, intercept, robust = _line(x, y)
    residuals = _residuals(x, y, slope, intercept)
    return Fit(
        amplitude=_exp(intercept),
        alpha=-slope,
        r_squared=_r_squared(y, residuals),
        total=total,
        smallest=min(tried),
        robust=robust,
        noise=max(*(point.spread for point in points), _exp(_scatter(residuals, robust)) - 1),
        points=tuple(points),
        left_out=tuple(left_out),
    )


def epoch_time(total: int, point: Point) -> float:
    """T: seconds of an epoch of `total` traces or samples in batches of the point's size."""
    return point.delay * total / point.batch_size


def epoch_seconds(fit: Fit, size: float) -> float:
    """Seconds that the curve gives for an epoch in batches of `size`."""
    return _exp(math.log(fit.amplitude) - fit.alpha * math.log(size))


def curve(fit: Fit, sizes: Sequence[float]) -> tuple[float, ...]:
    """`epoch_seconds` at each size."""
    return tuple(epoch_seconds(fit, size) for size in sizes)


def expected_delay(fit: Fit, size: float) -> float:
    """Seconds that the curve gives for one iteration of `size`."""
    return epoch_seconds(fit, size) * size / fit.total


def slope_at(fit: Fit, size: float) -> float:
    """Seconds of the epoch that one more trace in the batch saves at `size`; negative where it costs."""
    return fit.alpha * epoch_seconds(fit, size) / size


def peak_slope(fit: Fit, peak: Peak) -> float:
    """The steepest slope: of the curve at the smallest size, or the largest between two neighbouring measurements.

    Where no measured difference falls, the curve's.
    """
    measured = [(point.batch_size, epoch_time(fit.total, point)) for point in fit.points]
    falls = [(t - u) / (b - a) for (a, t), (b, u) in pairwise(measured) if t > TIE * u]
    steepest = max(falls, default=0.0)
    return steepest if peak == "difference" and 0 < steepest < math.inf else slope_at(fit, fit.smallest)


def plateau(fit: Fit, tau: float, peak: Peak) -> float | None:
    """The size at which the slope has fallen to `tau` of its peak: (alpha·A / (tau·peak))^(1/(alpha+1)).

    Off the fitted curve that is smallest·(1/tau)^(1/(alpha+1)), whatever A. None where the curve does not fall.
    """
    if fit.alpha <= 0:
        return None
    share = peak_slope(fit, peak) / (slope_at(fit, fit.smallest) or 1.0)
    return fit.smallest * _exp(-math.log(tau * share) / (fit.alpha + 1)) if share > 0 else None


def gain(fit: Fit) -> float:
    """Logarithm of the times by which the curve's epoch is faster at the largest measured size than at the smallest."""
    return fit.alpha * math.log(fit.points[-1].batch_size / fit.points[0].batch_size)


def drift(fit: Fit, observed: Observation) -> float:
    """By what share an iteration left the curve: 0.6 is 60 % slower. 0.0 where it is cold or has no usable delay."""
    points, _ = points_of([observed])
    expected = expected_delay(fit, observed.batch_size) if points else 0.0
    return points[0].delay / expected - 1 if points and not observed.cold and expected > 0 else 0.0


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, bool]:
    """Slope, intercept, and if an outlier made it a robust line."""
    slope = _bounded(median(_slope_from(x, y, i) for i in range(len(x))))
    intercept = median(_residuals(x, y, slope, 0.0))
    off = [abs(residual) for residual in _residuals(x, y, slope, intercept)]
    if len(x) >= _FEWEST_FOR_OUTLIERS and max(off) > TIE * max(_OUTLIER * _MAD * median(off), _OFF):
        return slope, intercept, True
    slope = _bounded(linear_regression(x, y).slope)
    return slope, fmean(_residuals(x, y, slope, 0.0)), False


def _bounded(slope: float) -> float:
    return max(-_STEEPEST, min(slope, _STEEPEST))


def _slope_from(x: Sequence[float], y: Sequence[float], i: int) -> float:
    """Median slope of the lines from point `i` to each of the others."""
    return median((y[j] - y[i]) / (x[j] - x[i]) for j in range(len(x)) if j != i)


def _residuals(x: Sequence[float], y: Sequence[float], slope: float, intercept: float) -> list[float]:
    return [b - intercept - slope * a for a, b in zip(x, y, strict=True)]


def _r_squared(y: Sequence[float], residuals: Sequence[float]) -> float:
    mean = fmean(y)
    about = math.fsum((b - mean) ** 2 for b in y)
    return max(0.0, 1 - math.fsum(r * r for r in residuals) / about) if about > _FLAT else 1.0


def _scatter(residuals: Sequence[float], robust: bool) -> float:
    """Standard deviation about the line, in logarithms; 0 where two points leave none."""
    if robust:
        return _MAD * median(map(abs, residuals))
    return math.sqrt(math.fsum(r * r for r in residuals) / (len(residuals) - 2)) if len(residuals) > 2 else 0.0


def _exp(x: float) -> float:
    return math.exp(max(-_LARGEST, min(x, _LARGEST)))
