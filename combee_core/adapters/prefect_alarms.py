"""Automations on a Prefect server that hear of a run that failed, fell silent or raised an alarm.

They are known by their names: setting them up again changes what differs and adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from combee_core.adapters.prefect_api import PrefectApi
from combee_core.base import Noun
from combee_core.errors import CombeeError

NIGHTS = ("nightly", "backfill", "profile")
"""Flows that run while nobody looks."""

HOOK = "combee-alarms"
_HEARTBEAT = "prefect.flow-run.heartbeat"
_ENDS = [f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Crashed", "Cancelled")]
_MESSAGE = "No sign of life for {seconds} s: the process of this run is gone. Its work is saved; combee rerun goes on."
_RUN_PAYLOAD = """{"event": "{{ event.event }}", "flow_run": "{{ event.resource.id }}", \
"name": "{{ event.resource.name }}", "occurred": "{{ event.occurred }}"}"""
_ALARM_PAYLOAD = """{{ event.payload | tojson }}"""


class Automation(Noun):
    """A name, when it fires and what it does, in the server's own words."""

    name: str
    description: str
    trigger: dict[str, Any]
    actions: tuple[dict[str, Any], ...]


def set_up(api: PrefectApi, url: str | None = None, silence: int = 600) -> dict[str, str]:
    """Make or mend all automations; what was done, by name: "created", "changed" or "as it was".

    `url` is called by webhook, else they only show in the event feed. `silence` is in seconds: a run that was heard and
    then is not for so long is marked Crashed. Raises `CombeeError` naming the request that failed.
    """
    action = {"type": "call-webhook", "block_document_id": _webhook(api, url)} if url else {"type": "do-nothing"}
    there = {one["name"]: one for one in api.find("automations", {})}
    return {one.name: _put(api, one, there.get(one.name)) for one in automations(action, silence)}


def automations(action: Mapping[str, Any], silence: int) -> Iterator[Automation]:
    """All automations; `action` tells somebody."""
    flows = {"prefect.resource.role": "flow", "prefect.resource.name": [*NIGHTS, "epoch"]}
    yield Automation(
        name="combee: a silent run is dead",
        description="A run whose heartbeat stops is marked Crashed: that frees its deployment for the next night.",
        trigger={
            **_event([_HEARTBEAT, *_ENDS], silence),
            "posture": "Proactive",
            "after": [_HEARTBEAT],
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "match_related": flows,
            "for_each": ["prefect.resource.id"],
        },
        actions=({"type": "change-flow-run-state", "state": "CRASHED", "message": _MESSAGE.format(seconds=silence)},),
    )
    yield Automation(
        name="combee: a run failed",
        description="A night or backfill ended as Crashed or TimedOut; one that failed raises an alarm of its own.",
        trigger={
            **_event([f"prefect.flow-run.{state}" for state in ("Crashed", "TimedOut")]),
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "match_related": {**flows, "prefect.resource.name": list(NIGHTS)},
        },
        actions=(_telling(action, _RUN_PAYLOAD),),
    )
    yield Automation(
        name="combee: an alarm",
        description="A run said that somebody should look: no traces, little learned, low survival, cost, cap, failed.",
        trigger={**_event(["combee.alarm.*"]), "match": {"prefect.resource.id": "combee.playbook.*"}},
        actions=(_telling(action, _ALARM_PAYLOAD),),
    )


def _event(expect: list[str], within: int = 0) -> dict[str, Any]:
    """A trigger on the first of these events. The server forgets which within 0 seconds belong together: it fires."""
    return {"type": "event", "posture": "Reactive", "expect": expect, "threshold": 1, "within": within}


def _telling(action: Mapping[str, Any], payload: str) -> dict[str, Any]:
    return {**action, "payload": payload} if action["type"] == "call-webhook" else dict(action)


def _put(api: PrefectApi, wanted: Automation, there: Mapping[str, Any] | None) -> str:
    body = {**wanted.model_dump(mode="json"), "enabled": True}
    if there is None:
        api.call("POST", "/automations/", body)
        return "created"
    if _same(body, there):
        return "as it was"
    api.call("PUT", f"/automations/{there['id']}", body)
    return "changed"


def _same(wanted: object, there: object) -> bool:
    """Whether the server's record says what is wanted; it may say more, and keeps sets in an order of its own."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        return all(_same(value, there.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(there, list):
        if all(isinstance(one, str) for one in wanted):
            return sorted(wanted) == sorted(there)
        return len(wanted) == len(there) and all(map(_same, wanted, there))
    return wanted == there


def _webhook(api: PrefectApi, url: str) -> str:
    """The id of the block that holds the address: automations and logs do not show it."""
    kind = api.call("GET", "/block_types/slug/webhook")
    schemas = api.call("POST", "/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind["id"]]}}})
    if not schemas:
        raise CombeeError(
            f"{api.address} knows no webhook block; run `prefect block register -m prefect.blocks.webhook`"
        )
    data = {"method": "POST", "url": url, "headers": {"content-type": "application/json"}}
    known = api.call("POST", "/block_documents/filter", _block(kind["id"]))
    if known:
        api.call("PATCH", f"/block_documents/{known[0]['id']}", {"data": data, "merge_existing_data": False})
        return str(known[0]["id"])
    ids = {"block_type_id": kind["id"], "block_schema_id": schemas[0]["id"]}
    return str(api.call("POST", "/block_documents/", {"name": HOOK, "data": data, **ids})["id"])


def _block(kind: str) -> dict[str, Any]:
    return {"block_documents": {"block_type_id": {"any_": [kind]}, "name": {"any_": [HOOK]}}}
