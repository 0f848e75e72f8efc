"""The batch size from measured delays: the largest that still pays (Combee, dynamic batch-size controller).

Larger batches make an epoch faster, ever less so; they also make the model lose specifics. So the choice is the size
at which the curve of epoch times has flattened to a small share of its steepest slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from combee_core.config import SizeSettings
from combee_core.fitting import TIE, curve, drift, epoch_seconds, expected_delay, fit, fit_points, gain, plateau
from combee_core.measuring import points_of
from combee_core.sizes import Bound, Decision, Fit, Observation, Point

__all__ = ["candidates", "curve", "decide", "drift", "epoch_seconds", "expected_delay", "fit"]

WORTH_MEASURING = 30
"""Below so many traces or samples nothing is measured: the batches would be too few to choose between."""

_LEAST_GAIN = 0.01


def candidates(settings: SizeSettings, total: int) -> tuple[tuple[int, ...], str]:
    """The sizes to measure, smallest first, and where some are left out the reason.

    Sizes above `total` go; then the largest go until all together take at most half of `total`, so that the choice
    is still of use. Nothing is measured twice to fill up, and nothing at all below 30.
    """
    wanted = sorted(set(settings.candidates))
    if total < WORTH_MEASURING:
        return (), f"{total} are too few to measure batch sizes on; it takes {WORTH_MEASURING}"
    kept = [size for size in wanted if 1 <= size <= total]
    while sum(kept) > total / 2:
        kept.pop()
    dropped = ", ".join(str(size) for size in wanted if size not in kept)
    reason = f"{dropped} left out: measuring may take half of {total} at most" if dropped else ""
    return tuple(kept), reason


def decide(
    observations: Sequence[Observation], settings: SizeSettings, total: int, token_limit: int | None = None
) -> Decision:
    """The batch size for `total` traces or samples, and why.

    A whole number from the smallest candidate to the least of `cap`, `total` and `token_limit` (where one of these is
    below the smallest candidate: that), at least 1. Never raises, whatever was measured.
    """
    points, left_out = points_of(observations)
    tried = {one.batch_size for one in observations if one.batch_size >= 1}
    found = fit_points(points, left_out, tried, total)
    wanted, rule, why = _from_curve(found, settings) if found else _without_curve(points, tried, settings)
    size, bound, limit = _within(wanted, rule, settings, {"training size": total, "token limit": token_limit})
    aside = f"; {len(left_out)} of {len(observations)} measurements left out" if left_out else ""
    return Decision(
        batch_size=size,
        bound_by=bound,
        reason=f"{why}{limit}{aside}",
        tau=settings.tau,
        peak=settings.peak,
        total=total,
        plateau=wanted if rule == "plateau" else None,
        fit=found,
        points=points,
        left_out=left_out,
    )


def _without_curve(points: Sequence[Point], tried: set[int], settings: SizeSettings) -> tuple[float, Bound, str]:
    only = {point.batch_size for point in points} or set(settings.candidates)
    if len(only) == 1:
        known = "was measured" if points else "is a candidate"
        return min(only), "only size", f"{min(only)} alone {known}: nothing is fitted"
    measured = f"only {len(points)} of {len(tried)} sizes have a usable delay" if tried else "nothing was measured"
    return settings.fallback, "fallback", f"{measured}, so the fallback of {settings.fallback} is taken"


def _from_curve(fit: Fit, settings: SizeSettings) -> tuple[float, Bound, str]:
    first, last = fit.points[0].batch_size, fit.points[-1].batch_size
    faster, noise = gain(fit), max(math.log1p(fit.noise), _LEAST_GAIN)
    if abs(faster) <= TIE * noise:
        change, within = _percent(abs(math.expm1(-faster))), _percent(math.expm1(noise))
        why = f"no clear difference: an epoch changes by {change} from size {first} to {last}, the noise is {within}"
        return fit.smallest, "smallest candidate", f"{why}; the smallest is taken, which loses the fewest specifics"
    size = plateau(fit, settings.tau, settings.peak)
    if size is None:
        why = f"larger batches make the epoch no faster (alpha {fit.alpha:.2f}): the smallest is taken"
        return fit.smallest, "smallest candidate", why
    beyond = f", beyond the {last} measured," if size > last else ""
    flat = f"the curve has flattened to {_percent(settings.tau)} of its steepest slope"
    return size, "plateau", f"at {size:.1f}{beyond} {flat} ({_quality(fit)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _quality(fit: Fit) -> str:
    robust = ", robust: one size lies far off the curve" if fit.robust else ""
    cold = ", one size measured cold only" if 0 < sum(point.cold for point in fit.points) < len(fit.points) else ""
    return f"alpha {fit.alpha:.2f}, R² {fit.r_squared:.2f} on {len(fit.points)} sizes{robust}{cold}"


def _within(
    size: float, rule: Bound, settings: SizeSettings, limits: dict[Bound, int | None]
) -> tuple[int, Bound, str]:
    """`size` as a whole number within the limits, the rule that binds, and a clause about it."""
    chosen, smallest = round(min(size, 1e9)), max(1, min(settings.candidates))
    clause = ""
    if chosen < smallest:
        chosen, rule, clause = smallest, "smallest candidate", f"; the smallest candidate is {smallest}"
    known: dict[Bound, int] = {
        name: limit for name, limit in {"cap": settings.cap, **limits}.items() if limit is not None
    }
    name = min(known, key=lambda name: known[name])
    if chosen > max(1, known[name]):
        chosen, rule, clause = max(1, known[name]), name, f"; the {name} allows {known[name]}"
    return chosen, rule, clause
