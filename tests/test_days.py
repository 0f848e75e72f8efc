"""Days of 23, 24 and 25 hours, and which day a run belongs to."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.days import SLACK, day_window, holds, is_over, may_hold, moment_of
from combee_core.errors import UsageError
from combee_core.types import Trajectory

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"]
YEAR_2026 = st.dates(date(2026, 1, 1), date(2026, 12, 30))


def at(when: datetime | None) -> Trajectory:
    return Trajectory(trace_id="t", task="q", when=when)


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 8), 23), (date(2026, 11, 1), 25), (date(2026, 3, 9), 24)])
def test_a_day_is_as_long_as_people_had_it(day, hours):
    start, end = day_window(day, "America/New_York")
    assert end - start == timedelta(hours=hours)
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=hours)


def in_window(run, window, modified):
    return holds(window, moment_of(run.when, modified, window))


def test_a_window_starts_and_ends_at_local_midnight():
    start, end = day_window(date(2026, 7, 1), "America/New_York")
    assert start.isoformat() == "2026-07-01T00:00:00-04:00"
    assert end.isoformat() == "2026-07-02T00:00:00-04:00"


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 8), 23), (date(2026, 11, 1), 25)])
def test_each_hour_around_a_change_lies_in_exactly_one_day(day, hours):
    days = [day + timedelta(days=n) for n in (-1, 0, 1)]
    windows = {d: day_window(d, "America/New_York") for d in days}
    first = windows[days[0]].start.astimezone(UTC)
    moments = [first + timedelta(hours=n) for n in range(24 + hours + 24)]
    owners = [[d for d in days if in_window(at(m), windows[d], m)] for m in moments]
    assert Counter(len(found) for found in owners) == {1: len(moments)}
    assert Counter(found[0] for found in owners)[day] == hours


@given(YEAR_2026, st.sampled_from(ZONES))
def test_days_follow_each_other_without_gap_or_overlap(day, zone):
    today, tomorrow = day_window(day, zone), day_window(day + timedelta(days=1), zone)
    assert today.end.astimezone(UTC) == tomorrow.start.astimezone(UTC)
    assert timedelta(hours=23) <= today.end - today.start <= timedelta(hours=25)


@given(YEAR_2026, st.sampled_from(ZONES), st.timedeltas(timedelta(hours=-30), timedelta(hours=30)))
def test_a_moment_lies_in_the_day_that_its_local_date_names(day, zone, shift):
    window = day_window(day, zone)
    moment = window.start.astimezone(UTC) + shift
    assert holds(window, moment) == (moment.astimezone(window.start.tzinfo).date() == day)


def test_the_start_is_inside_and_the_end_is_not():
    window = day_window(date(2026, 7, 1), "Europe/Berlin")
    assert in_window(at(window.start), window, window.end)
    assert not in_window(at(window.end), window, window.start)


def test_without_a_time_of_its_own_a_run_is_of_the_day_of_its_file():
    window = day_window(date(2026, 7, 1), "UTC")
    assert in_window(at(None), window, datetime(2026, 7, 1, 12, tzinfo=UTC))
    assert not in_window(at(None), window, datetime(2026, 7, 2, 12, tzinfo=UTC))


def test_a_time_without_zone_is_read_in_the_given_one():
    late = at(datetime(2026, 7, 1, 23, 30))
    assert in_window(late, day_window(date(2026, 7, 1), "Asia/Tokyo"), datetime(2026, 1, 1, tzinfo=UTC))
    assert moment_of(late.when, datetime(2026, 1, 1), None) == datetime(2026, 7, 1, 23, 30, tzinfo=UTC)


def test_a_time_with_zone_keeps_it():
    offset = timezone(timedelta(hours=9))
    moment = at(datetime(2026, 7, 2, 3, tzinfo=offset))
    assert in_window(moment, day_window(date(2026, 7, 1), "UTC"), datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "zone", ["Berlin", "", "Europe", "../../etc/passwd", "/etc/localtime", "a\0b", "europe berlin"]
)
def test_an_unknown_zone_is_refused_with_an_example(zone):
    with pytest.raises(UsageError, match="Europe/Berlin"):
        day_window(date(2026, 7, 1), zone)


@given(st.datetimes(datetime(2001, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)), st.sampled_from(ZONES))
def test_a_file_that_was_changed_after_a_run_of_a_day_may_hold_that_day(run, zone):
    window = day_window(run.astimezone(ZoneInfo(zone)).date(), zone)
    assert may_hold(window, run)
    assert may_hold(window, run + timedelta(days=400))
    assert may_hold(window, run - SLACK)
    assert not may_hold(window, window.start.astimezone(UTC) - SLACK - timedelta(seconds=1))
    assert may_hold(window, datetime(1980, 1, 1, tzinfo=UTC))


def test_a_day_is_over_when_its_last_hour_is():
    day, last = date(2026, 11, 1), datetime(2026, 11, 2, 4, 59, tzinfo=UTC)
    assert not is_over(day, "America/New_York", last)
    assert is_over(day, "America/New_York", last + timedelta(minutes=1))
    with pytest.raises(UsageError, match="has not begun in America/New_York"):
        is_over(day, "America/New_York", datetime(2026, 11, 1, 3, 59, tzinfo=UTC))
