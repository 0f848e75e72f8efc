"""Deployments on a real server: made in place, what a person has switched off stays off, and when nights will start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

from combee_core.config import Source
from combee_core.run_file import RunFile, Schedule
from flows.serving import SERVED, deployments, register

IDLE = RunFile()
FULL = RunFile(source=Source(uris=("/traces",)))
LATER = FULL.model_copy(update={"schedule": Schedule(cron="0 5 * * *")})


@pytest.fixture
def label(prefect_api: str) -> str:
    """A name that no other test has."""
    return uuid.uuid4().hex[:8]


def registered(file: RunFile, label: str) -> Any:
    """The nightly deployment, as the server has it after these were registered."""
    _, ids = register(deployments(file, label))
    assert set(ids) == {f"{flow.name}/{flow.name}-{label}" for flow in SERVED}
    return seen(label)


def seen(label: str) -> Any:
    with get_client(sync_client=True) as client:
        return client.read_deployment_by_name(f"nightly/nightly-{label}")


def switch(deployment: Any, *, active: bool) -> None:
    """The switch of the schedule on the deployment's page."""
    with get_client(sync_client=True) as client:
        client.update_deployment_schedule(deployment.id, deployment.schedules[0].id, active=active)


def test_a_deployment_is_changed_in_place_and_what_was_switched_off_stays_off(label: str) -> None:
    idle = registered(IDLE, label)
    assert not idle.schedules[0].active

    full = registered(FULL, label)
    assert full.id == idle.id
    assert full.schedules[0].active, "nobody had switched it off: there was nothing to do"
    assert (full.paused, full.concurrency_options.collision_strategy) == (False, "CANCEL_NEW")

    switch(full, active=False)
    off = registered(LATER, label)
    assert (off.id, off.schedules[0].active, off.schedules[0].schedule.cron) == (idle.id, False, "0 5 * * *")

    switch(off, active=True)
    with get_client(sync_client=True) as client:
        client.pause_deployment(off.id)
    paused = registered(LATER, label)
    assert (paused.paused, paused.schedules[0].active) == (True, True)


# when nights will start, as the server has planned it

FOR_EVER = 120.0
"""Seconds after which nothing will come any more; nothing here depends on how long it takes."""
HALF_PAST_THREE, DAY = clock(3, 30), timedelta(days=1)


def abroad(zone: str) -> RunFile:
    return RunFile(source=Source(uris=("/traces",), timezone=zone))


def schedule_of(deployment: Any) -> Any:
    (one,) = deployment.schedules
    return one.active, one.schedule


def planned(deployment: Any) -> list[datetime]:
    """The starts of its runs that are still to come, in its schedule's zone and in order."""
    mine = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(deployment_filter=mine)
    zone = ZoneInfo(deployment.schedules[0].schedule.timezone)
    assert all(run.state and run.state.is_scheduled() for run in runs)
    return sorted(run.expected_start_time.astimezone(zone) for run in runs if run.expected_start_time)


def once_planned(deployment: Any) -> list[datetime]:
    """The same, as soon as the server's scheduler has looked at the deployment."""
    deadline = time.monotonic() + FOR_EVER
    while not (found := planned(deployment)):
        assert time.monotonic() < deadline, "the server has scheduled nothing"
        time.sleep(0.3)
    return found


def are_a_night_each(starts: Sequence[datetime]) -> bool:
    """One start on each of some days that follow each other."""
    days = [start.date() for start in starts]
    return days == [days[0] + n * DAY for n in range(len(days))]


def change_of_clock(zone: str, *, forward: bool) -> date:
    """The next day in the zone on which clocks are put forward, or back."""
    at, noon = ZoneInfo(zone), datetime.combine(datetime.now(UTC), clock(12))
    noons = [(noon + n * DAY).replace(tzinfo=at) for n in range(1, 400)]
    offsets = [one.utcoffset() or timedelta() for one in noons]
    changes = zip(noons[1:], offsets[1:], offsets, strict=False)
    return next(one.date() for one, after, before in changes if (after > before if forward else after < before))


def test_the_next_nights_start_at_half_past_three_by_the_clock_of_the_zone_and_a_restart_keeps_them(label: str) -> None:
    now = datetime.now(UTC)
    night = registered(abroad("Asia/Kolkata"), label)
    before = once_planned(night)
    assert {start.time() for start in before} == {HALF_PAST_THREE}
    assert now < before[0] < now + DAY + timedelta(hours=1)
    assert are_a_night_each(before)

    again = registered(abroad("Asia/Kolkata"), label)
    assert (again.id, schedule_of(again)) == (night.id, schedule_of(night))
    after = once_planned(again)
    assert are_a_night_each(after), "none twice"
    # Half past three may have passed in between.
    assert set(before[1:]) <= set(after)
    assert len(before) > 1


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "back"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Europe/Athens"])
def test_when_clocks_change_there_is_one_night_a_day_all_the_same(label: str, zone: str, forward: bool) -> None:
    """In Athens half past three is left out by the change, or there twice."""
    night, change = registered(abroad(zone), label), change_of_clock(zone, forward=forward)
    first = datetime.combine(change - 2 * DAY, clock(), ZoneInfo(zone))
    last = first + 5 * DAY
    window = {"start_time": first.isoformat(), "end_time": last.isoformat(), "min_runs": 5}
    with get_client(sync_client=True) as client:
        client.request("POST", "/deployments/{id}/schedule", path_params={"id": night.id}, json=window)
    starts = [start for start in planned(night) if first <= start < last]
    assert len(starts) == 5
    assert are_a_night_each(starts)
    assert {start.utcoffset() for start in starts} == {first.utcoffset(), last.utcoffset()}
    told = {start.date(): start.time() for start in starts}
    left_out = (zone, forward) == ("Europe/Athens", True)
    assert told.pop(change) == (clock(4, 30) if left_out else HALF_PAST_THREE)
    assert set(told.values()) == {HALF_PAST_THREE}
