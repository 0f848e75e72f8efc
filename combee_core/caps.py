"""Caps and when one is passed: pure arithmetic over what was spent."""

from __future__ import annotations

from typing import Literal, NamedTuple

from combee_core.base import Noun
from combee_core.config import Budget, RunSettings
from combee_core.spent import Spent

Quantity = Literal["cost", "tokens", "calls", "minutes"]

_TOLERANCE = 1e-9
"""Ten times 0.1 is not quite 1 in floating point; it fits under a cap of 1 all the same."""

_UNITS: dict[Quantity, str] = {"cost": "US dollars", "tokens": "tokens", "calls": "calls", "minutes": "minutes"}


class Cap(NamedTuple):
    """The most of one quantity that a run, or all runs of a day, may use."""

    what: Quantity
    most: float
    of_day: bool = False

    @property
    def option(self) -> str:
        """The option that sets it."""
        return f"--max-{self.what}{'-per-day' if self.of_day else ''}"


class Breach(NamedTuple):
    """A cap that does not let a call through: what is used, and what the call may take besides."""

    cap: Cap
    used: float
    more: Spent = Spent()

    @property
    def is_over(self) -> bool:
        """True where no answer that is still to come can make room: of time nothing is given back."""
        return self.cap.what == "minutes"

    @property
    def sentence(self) -> str:
        """Which cap, and how much of it is used."""
        cap = self.cap
        whose = "the runs of this store have used today (UTC)" if cap.of_day else "this run has used"
        more = f", and the next call may take {_shown(cap.what, amount(cap, self.more))}" if self._is_close else ""
        return f"budget: {whose} {_used_of(cap, self.used)}{more}"

    @property
    def _is_close(self) -> bool:
        return self.cap.what in ("cost", "tokens") and self.used < self.cap.most


class CapUse(Noun):
    """A cap, and how much of it is used: what a run that goes on will find."""

    option: str
    used: float
    most: float
    sentence: str


def uses(settings: RunSettings, own: Spent, today: Spent) -> tuple[CapUse, ...]:
    """The caps in a run's settings beside what the run has spent, and all runs of the store today (UTC)."""
    held = [(cap, amount(cap, own)) for cap in caps_of(settings.budget)]
    held += [(cap, amount(cap, today)) for cap in caps_of(settings.day_budget, of_day=True)]
    return tuple(
        CapUse(option=cap.option, used=used, most=cap.most, sentence=_used_of(cap, used)) for cap, used in held
    )


def caps_of(budget: Budget, *, of_day: bool = False) -> tuple[Cap, ...]:
    """The caps that a budget sets; those of time first, which are the quickest to say no."""
    names: tuple[Quantity, ...] = ("minutes", "cost", "tokens", "calls")
    given = ((name, getattr(budget, name)) for name in names)
    return tuple(Cap(name, most, of_day) for name, most in given if most is not None)


def breach_of(
    cap: Cap, own: Spent, others: Spent, own_before: Spent, wanted: Spent, processes: int = 1
) -> Breach | None:
    """Whether what is `wanted` would pass the cap beside what is spent.

    `others` and `own_before` are what others and this process had spent when that was looked at last: of what was
    left then, this process may use one part in `processes`.
    """
    used = amount(cap, own) + amount(cap, others)
    if cap.what == "minutes":
        return Breach(cap, used) if used >= cap.most else None
    before = amount(cap, own_before)
    left = (cap.most - amount(cap, others) - before) / processes
    would_be = amount(cap, own) + amount(cap, wanted)
    return Breach(cap, used) if would_be > before + left + _TOLERANCE else None


def amount(cap: Cap, spent: Spent) -> float:
    """What counts under a cap, in its unit."""
    return spent.seconds / 60 if cap.what == "minutes" else float(getattr(spent, cap.what))


def _used_of(cap: Cap, used: float) -> str:
    return f"{_shown(cap.what, used)} of {cap.most:,g} {_UNITS[cap.what]} ({cap.option})"


def _shown(what: Quantity, value: float) -> str:
    return f"{value:,.4f}" if what == "cost" else f"{value:,.1f}" if what == "minutes" else f"{value:,.0f}"
