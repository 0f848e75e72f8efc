"""Days as people in a time zone have them: 23, 24 or 25 hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from combee_core.errors import UsageError

SLACK = timedelta(days=2)
"""By how much the clocks of whoever logs and whoever stores may differ."""

_STAMPED = datetime(2000, 1, 1, tzinfo=UTC)
"""Archives stamp files with 1970 or 1980, whenever they were changed."""


class Window(NamedTuple):
    """From `start` (inside) to `end` (outside); both aware, and `start`'s zone is the one of naive times."""

    start: datetime
    end: datetime


def day_window(day: date, timezone: str) -> Window:
    """Midnight to midnight in an IANA zone. Raises UsageError for an unknown zone."""
    return Window(_midnight(day, timezone), _midnight(day + timedelta(days=1), timezone))


def is_over(day: date, timezone: str, now: datetime) -> bool:
    """True for a day that is over, False for one that is going on.

    Raises `UsageError` for one that has not begun, and for an unknown zone.
    """
    window = day_window(day, timezone)
    if now < window.start:
        raise UsageError(f"{day} has not begun in {timezone}; name a day that is over")
    return now >= window.end


def moment_of(when: datetime | None, modified: datetime, window: Window | None = None) -> datetime:
    """The run's time in UTC: as logged, else the file's modification; naive ones lie in the window's zone."""
    moment = when or modified
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=window.start.tzinfo if window else UTC)
    return moment.astimezone(UTC)


def holds(window: Window, moment: datetime) -> bool:
    """True if an aware moment lies in the window."""
    return window.start.astimezone(UTC) <= moment.astimezone(UTC) < window.end.astimezone(UTC)


def may_hold(window: Window, modified: datetime) -> bool:
    """Whether a file last changed then (aware) may hold runs of the window: what is in it had happened before."""
    return modified < _STAMPED or modified >= window.start.astimezone(UTC) - SLACK


def zone(timezone: str) -> ZoneInfo:
    """The IANA zone of that name. Raises `UsageError` with an example for an unknown one."""
    try:
        # no_cache: between datetimes of one and the same zone object Python computes with wall-clock
        # times, and a day of 23 hours would measure 24.
        return ZoneInfo.no_cache(timezone)
    except (KeyError, OSError, ValueError) as error:
        raise UsageError(f"unknown time zone {timezone!r}; use a name such as Europe/Berlin or UTC") from error


def _midnight(day: date, timezone: str) -> datetime:
    return datetime.combine(day, time.min, zone(timezone))
