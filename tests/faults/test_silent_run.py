"""A run that is killed with its machine: the server hears no heartbeat, marks it dead, and tells somebody."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from command import Combee, kill
from hooks import hook
from simserver import simulated_server

from combee_core.adapters.prefect_alarms import set_up
from combee_core.adapters.prefect_api import PrefectApi
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

SILENCE = 40
"""Seconds; a heartbeat comes every 30."""


def until(found: Callable[[], Any], seconds: float = 300) -> Any:
    """What `found` gives once it gives anything."""
    deadline = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(1)
    return value


def test_a_killed_night_is_marked_crashed_and_reported(combee: Combee, tmp_path: Path) -> None:
    port = json.loads((combee.home / "server.json").read_text())["port"]
    api = PrefectApi(f"http://127.0.0.1:{port}/api", {})
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 10, 0, date(2026, 3, 2)))
    beating = replace(combee, environ={"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"})

    def nights() -> list[dict[str, Any]]:
        named = {"flows": {"name": {"any_": ["nightly"]}}, "flow_runs": {"name": {"like_": "nightly-silent"}}}
        return list(api.find("flow_runs", named))

    with hook() as (url, got), simulated_server(tmp_path, latency=600) as server:
        set_up(api, url, SILENCE)
        source = ("--traces", tmp_path / "day.jsonl", "--day", "2026-03-02", "--store", f"file://{tmp_path}/store")
        model = ("--model", "openai/simulated/overload", "--api-base", server.url)
        process = beating.start("nightly", "--playbook", "silent", *source, *model)
        assert until(lambda: server.stats()["running"]), "the night has not begun to ask"
        kill(process)
        assert until(lambda: [run for run in nights() if run["state"]["name"] == "Crashed"])
        told = until(lambda: [one for one in got if one.get("event") == "prefect.flow-run.Crashed"])
        set_up(api)
    (night,) = nights()
    assert night["state"]["message"].startswith(f"No sign of life for {SILENCE} s")
    assert told[0]["flow_run"] == f"prefect.flow-run.{night['id']}"
