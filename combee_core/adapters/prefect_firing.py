"""Do a Prefect server's automations fire? Its background service that reads events can be gone without a word."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from combee_core.adapters.prefect_api import PrefectApi
from combee_core.errors import CombeeError

PATIENCE = 60.0
"""Seconds; a server without other work fires within two."""

_START = "start its background services anew (`prefect server services start`, or combee server down, then up)"


def firing(
    api: PrefectApi,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> str:
    """How long an automation takes from an event to its act: one that pauses itself, made for this and deleted after.

    Raises `CombeeError` that says how far it came within `patience` seconds, and the way out.
    """
    event = f"combee.doctor.{uuid.uuid4().hex}"
    try:
        its = str(api.call("POST", "/automations/", _pausing_itself(event))["id"])
        began = clock()
        while clock() - began < patience:
            # Sent again each time: the service may hear of the automation after the first event.
            api.call("POST", "/events", [_event(event, its)])
            sleep(1)
            if not api.call("GET", f"/automations/{its}")["enabled"]:
                return f"an automation acts {clock() - began:.0f} s after its event"
        raise CombeeError(f"{api.address}: {_how_far(api, its)} within {patience:.0f} s; {_START}")
    finally:
        _tidy(api, event)


def _tidy(api: PrefectApi, event: str) -> None:
    """Delete the automation by its name; where the server is gone, one is left that can only pause itself."""
    with suppress(CombeeError):
        for one in list(api.find("automations", {"automations": {"name": {"any_": [_name(event)]}}})):
            api.call("DELETE", f"/automations/{one['id']}")


def _name(event: str) -> str:
    return f"combee: do automations fire? ({event.rpartition('.')[2][:8]})"


def _pausing_itself(event: str) -> dict[str, object]:
    return {
        "name": _name(event),
        "description": "Made by combee doctor --deep, which deletes it.",
        "enabled": True,
        "trigger": {"type": "event", "posture": "Reactive", "expect": [event], "threshold": 1, "within": 0},
        "actions": [{"type": "pause-automation", "source": "inferred"}],
    }


def _event(name: str, automation: str) -> dict[str, object]:
    return {
        "id": str(uuid.uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": name,
        "resource": {"prefect.resource.id": f"prefect.automation.{automation}"},
    }


def _how_far(api: PrefectApi, automation: str) -> str:
    about = {"filter": {"resource": {"id": [f"prefect.automation.{automation}"]}}}
    names = {one["event"] for one in api.call("POST", "/events/filter", about)["events"]}
    if "prefect.automation.triggered" in names:
        return "automations fire, and nobody carries out their actions"
    if any(name.startswith("combee.doctor.") for name in names):
        return "events are recorded, and no automation fires on them (reactive-triggers does not run)"
    return "events are neither recorded nor acted upon (no background service runs)"
