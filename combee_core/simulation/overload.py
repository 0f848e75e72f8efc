"""Context overload as curves: how many entries one call writes, however much it reads.

The curator's curves are figure 2 of the Combee paper, read as entries per call (playbook entries divided by
the number of updates). The merger's curve is an assumption of this project: the paper does not measure that
call by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from math import exp, log
from types import MappingProxyType

from combee_core.errors import UsageError

Curve = tuple[tuple[int, float], ...]
"""Points (distinct specifics read, entries written), by the first."""
Merger = Callable[[float], float]
"""Distinct operations that a merge call reads → operations that it writes."""

FORMULA: Curve = ((1, 1.1), (5, 4.0), (10, 4.8), (20, 7.8), (50, 9.4), (100, 8.4))
FINER: Curve = ((1, 1.0), (5, 3.7), (20, 8.8), (50, 7.8), (125, 5.5))

MODELS: Mapping[str, Curve] = MappingProxyType({"simulated/overload": FORMULA, "simulated/overload-finer": FINER})
DEFAULT_MODEL = "simulated/overload"

_EASY = 40
_KEPT = 0.95


def curve_of(model: str) -> Curve:
    """The curve of a simulated model. Raises `UsageError` with the known names for any other."""
    if model not in MODELS:
        raise UsageError(f"no simulated model is called {model!r}; there are: {', '.join(MODELS)}")
    return MODELS[model]


def entries(m: float, curve: Curve = FORMULA) -> float:
    """Entries that a curator call writes when it reads `m` distinct specifics.

    Straight between the points of the curve over log m, constant outside them. A call never writes more
    than `m`; that limit is the caller's.
    """
    at = bisect_right(curve, m, key=lambda point: point[0])
    if at == 0:
        return curve[0][1]
    if at == len(curve):
        return curve[-1][1]
    (x0, y0), (x1, y1) = curve[at - 1], curve[at]
    return y0 + (y1 - y0) * log(m / x0) / log(x1 / x0)


def merged(u: float) -> float:
    """Operations that a merge call writes of `u` distinct ones: nearly all up to 40, at most 60 above."""
    if u <= _EASY:
        return _KEPT * u
    return 38 + 22 * (1 - exp(-(u - _EASY) / 23.2))


def merged_half(u: float) -> float:
    """The same merger with half the room: nearly all up to 20, at most 30 above. To see what the assumption does."""
    return merged(2 * u) / 2


def merged_freely(u: float) -> float:
    """A merger that no length overloads; it still loses one operation in twenty."""
    return _KEPT * u
