"""So many traces a day, learned in sequence, in the paper's form and in bounded groups: what each will cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from combee_core.base import Noun
from combee_core.config import RunSettings
from combee_core.estimate import Basis, Estimate, Load, estimate

Fits = Literal["yes", "perhaps", "no"]
"""Whether a night ends in time: perhaps, where it would if all calls took the same time."""

PAPER_SIZE = 40
"""Batch size of the paper's form, where none is given."""

_STEPS = 64
"""Parts that a night of equal batches is cut into: the playbook grows from each to the next."""


class FormEstimate(Noun):
    """One way to learn: what a night costs that begins with the present playbook, and so many such nights."""

    name: str
    batch_size: int
    night: Estimate
    days: Estimate
    fits: Fits


def forms(settings: RunSettings) -> dict[str, RunSettings]:
    """The three ways, and the settings' own where they say how groups are made or merged; what they say besides holds
    for each.

    In sequence a batch is one trace. Bounded groups take the largest batch that `auto` would, unless one is given.
    """
    given = settings.batch_size if isinstance(settings.batch_size, int) else None
    paper = {"grouping": "paper", "merge": "paper"}
    bounded = {"grouping": "bounded", "merge": "cluster", "levels": 2}
    ways = {
        "sequential": settings.model_copy(update={**paper, "batch_size": 1}),
        "paper": settings.model_copy(update={**paper, "batch_size": given or PAPER_SIZE}),
        "bounded": settings.model_copy(update={**bounded, "batch_size": given or settings.sizes.cap}),
    }
    if (settings.grouping, settings.merge) != ("auto", "auto"):
        ways["as set"] = settings.model_copy(update={"batch_size": given or settings.sizes.fallback})
    return ways


def estimate_rate(traces: int, days: int, window: float, basis: Basis) -> tuple[FormEstimate, ...]:
    """What each form costs at `traces` a day for so many days; a night is to end within `window` hours."""
    return tuple(_form(name, settings, traces, days, window, basis) for name, settings in forms(basis.settings).items())


def _form(name: str, settings: RunSettings, traces: int, days: int, window: float, basis: Basis) -> FormEstimate:
    size = settings.batch_size if isinstance(settings.batch_size, int) else PAPER_SIZE
    loads = tuple(_loads(traces, size, round(basis.experience.trace)))
    night = estimate(loads, replace(basis, settings=settings))
    return FormEstimate(name=name, batch_size=size, night=night, days=night.times(days), fits=_fits(night, window))


def _loads(traces: int, size: int, weight: int) -> Iterator[Load]:
    whole, rest = divmod(traces, size)
    for part in range(_STEPS):
        times = whole * (part + 1) // _STEPS - whole * part // _STEPS
        if times:
            yield Load(traces=(weight,) * size, times=times)
    if rest:
        yield Load(traces=(weight,) * rest)


def _fits(night: Estimate, window: float) -> Fits:
    if night.hours <= window:
        return "yes"
    return "perhaps" if night.hours_at_least <= window else "no"
