"""What alarms and gc do on a real Prefect server: automations, events, history."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from command import Combee
from hooks import hook

from combee_core.adapters.prefect_alarms import set_up
from combee_core.adapters.prefect_api import PAUSES, PrefectApi
from combee_core.adapters.prefect_firing import firing
from combee_core.adapters.prefect_history import prune_history, running
from combee_core.adapters.prefect_state import about, clock, watched
from combee_core.errors import CombeeError


@pytest.fixture(scope="module")
def api(combee: Combee) -> PrefectApi:
    """The tests' server."""
    port = json.loads((combee.home / "server.json").read_text())["port"]
    return PrefectApi(f"http://127.0.0.1:{port}/api", {})


def event(name: str, resource: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": name,
        "resource": {"prefect.resource.id": resource},
        "payload": payload,
    }


def until(found: Callable[[], Any], seconds: float = 60) -> Any:
    """What `found` gives once it gives anything."""
    deadline = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return value


def test_automations_are_set_up_once_mended_and_fire_on_our_events(api: PrefectApi) -> None:
    with hook() as (url, got):
        set_up(api, url)
        assert set(set_up(api, url).values()) == {"as it was"}
        names = [one["name"] for one in api.find("automations", {}) if one["name"].startswith("combee: ")]
        assert len(names) == len(set(names)) == 3
        assert "automations for dead runs" in watched(api, {})
        mine = f"combee.playbook.{uuid.uuid4().hex}"
        api.call("POST", "/events", [event("combee.alarm.no-traces", mine, {"kind": "no-traces", "message": "it's"})])
        assert until(lambda: got) == [{"kind": "no-traces", "message": "it's"}]
    recorded = {"filter": {"event": {"name": ["combee.alarm.no-traces"]}, "resource": {"id": [mine]}}}
    assert until(lambda: api.call("POST", "/events/filter", recorded)["events"])
    # Without an address nobody is called any more.
    assert set(set_up(api).values()) == {"as it was", "changed"}


def test_of_missing_automations_the_closer_look_says_how_to_get_them(api: PrefectApi) -> None:
    set_up(api)
    (silent,) = (one for one in api.find("automations", {}) if one["name"] == "combee: a silent run is dead")
    api.call("DELETE", f"/automations/{silent['id']}")
    with pytest.raises(CombeeError, match=r"a silent run is dead.*combee alarms setup"):
        watched(api, {})
    assert set_up(api)["combee: a silent run is dead"] == "created"


def test_that_automations_fire_is_tried_with_one_that_is_gone_afterwards(api: PrefectApi) -> None:
    assert "an automation acts" in firing(api)
    assert not [one for one in api.find("automations", {}) if "do automations fire?" in one["name"]]


def test_a_server_tells_version_and_time(api: PrefectApi) -> None:
    assert "on a database that it does not tell, answers in" in about(api)
    assert " on sqlite, answers in" in about(api, "sqlite")
    assert "agrees within" in clock(api)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(CombeeError, match=r"127\.0\.0\.1:9.*is the Prefect server running"):
        PrefectApi("http://127.0.0.1:9/api", {}).call("GET", "/admin/version")


def test_credentials_go_along_as_prefect_would_send_them() -> None:
    with hook() as (url, _):
        for environ in ({"PREFECT_API_KEY": "k"}, {"PREFECT_API_AUTH_STRING": "a:b"}):
            PrefectApi(url, environ).call("POST", "/x", {})


def test_a_busy_server_is_asked_again_and_one_that_stays_busy_or_refuses_is_named() -> None:
    pauses: list[float] = []
    with hook(first=[503, 429, 502]) as (url, got):
        PrefectApi(url, {}, pauses.append).call("POST", "/x", {"n": 1})
    assert (got, pauses) == ([{"n": 1}] * 4, list(PAUSES[:3]))
    for status, times in ((503, len(PAUSES) + 1), (409, 1), (500, 1)):
        with hook(status) as (url, got), pytest.raises(CombeeError, match=rf"POST {url}/x: {status} "):
            PrefectApi(url, {}, pauses.append).call("POST", "/x", {})
        assert len(got) == times


# history


def flow_run(api: PrefectApi, parameters: dict[str, Any], state: str = "COMPLETED") -> str:
    flow = api.call("POST", "/flows/", {"name": f"flow-{uuid.uuid4().hex[:8]}"})
    body = {"flow_id": flow["id"], "parameters": parameters, "state": {"type": state}}
    run = str(api.call("POST", "/flow_runs/", body)["id"])
    artifact = {"key": f"a-{run}", "type": "markdown", "data": "x", "flow_run_id": run}
    api.call("POST", "/artifacts/", artifact)
    return run


def left(api: PrefectApi, *runs: str) -> list[str]:
    found = {one["id"] for one in api.find("flow_runs", {"flow_runs": {"id": {"any_": list(runs)}}})}
    return [run for run in runs if run in found]


def artifacts(api: PrefectApi, *runs: str) -> int:
    return len(list(api.find("artifacts", {"artifacts": {"flow_run_id": {"any_": list(runs)}}})))


def test_ended_runs_of_this_store_go_with_their_artifacts_and_others_stay(api: PrefectApi) -> None:
    store = f"file:///{uuid.uuid4().hex}"
    ours = [
        flow_run(api, {"request": {"store": store}}),
        flow_run(api, {"place": {"store": store, "run": "r"}}, "FAILED"),
    ]
    alive = flow_run(api, {"request": {"store": store}}, "RUNNING")
    foreign = flow_run(api, {"request": {"store": f"{store}-other"}}), flow_run(api, {"x": 1}), flow_run(api, {})
    soon, long_ago = datetime.now(UTC) + timedelta(minutes=1), datetime.now(UTC) - timedelta(days=1)
    assert list(running(api, store)) == [alive]
    assert prune_history(api, store, long_ago) == {"flow runs": 0, "artifacts": 0}
    assert prune_history(api, store, soon, dry_run=True) == {"flow runs": 2, "artifacts": 2}
    assert left(api, *ours) == ours
    assert prune_history(api, store, soon) == {"flow runs": 2, "artifacts": 2}
    assert left(api, *ours, alive, *foreign) == [alive, *foreign]
    assert artifacts(api, *ours) == 0
    assert artifacts(api, alive, *foreign) == 4
    assert prune_history(api, store, soon) == {"flow runs": 0, "artifacts": 0}
    api.call("POST", f"/flow_runs/{alive}/set_state", {"state": {"type": "CRASHED"}, "force": True})
