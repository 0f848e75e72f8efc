"""Cancel in the UI reaches a run from a terminal: no new call, nothing published, and it can be gone on with."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from command import Combee
from prefect_http import api
from simserver import SimulatedServer, simulated_server

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path, latency=1.0) as running:
        yield running


def test_a_cancelled_run_stops_says_how_to_go_on_and_goes_on_from_what_is_saved(
    combee: Combee, server: SimulatedServer, tmp_path: Path
) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 60, 0, date(2026, 3, 2)))
    store = ("--store", f"file://{tmp_path}/store")
    slowly = ("--hedge", 0, "--batch-size", 60, "--concurrency", 2, "--max-concurrency", 2)
    model = ("--model", "openai/simulated/overload", "--api-base", server.url)
    process = combee.start("learn", tmp_path / "day.jsonl", *store, *model, *slowly, "--json")
    while sum(server.asked().values()) < 4:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    (running,) = combee("runs", *store, "--json").json["runs"]
    flow_run = running["flow_run_id"]

    change = {"state": {"type": "CANCELLING"}, "force": False}
    assert api(combee, f"/flow_runs/{flow_run}/set_state", change)["status"] == "ACCEPT"
    out, said = process.communicate(timeout=120)

    asked = server.asked()
    assert running["state"] == "running"
    assert process.returncode == 1
    assert f"cancelled; what is saved stays saved, go on with: combee rerun {flow_run}" in said
    assert json.loads(out)["version"] is None
    assert sum(asked.values()) < 60, "queued calls are not made"
    state = api(combee, f"/flow_runs/{flow_run}")["state"]
    assert (state["type"], f"combee rerun {flow_run}" in state["message"]) == ("CANCELLED", True)
    below = api(combee, "/flow_runs/filter", {"flow_runs": {"parent_flow_run_id": {"any_": [flow_run]}}})
    assert {one["state"]["type"] for one in below} == {"CANCELLED"}
    (stopped,) = combee("runs", *store, "--json").json["runs"]
    assert stopped["state"] == "stopped"

    done = combee("rerun", flow_run, "--json").json
    assert (done["accounting"]["in"], done["version"]) == (60, 1)
    assert max(server.asked().values()) == 1, "nothing was asked twice"
