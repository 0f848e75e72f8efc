"""Deployments on a real server: made in place, and what a person has switched off stays off."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from prefect.client.orchestration import get_client

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
