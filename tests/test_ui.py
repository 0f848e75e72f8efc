"""What people look at: pages of the real Prefect UI in a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import Combee
from missing import missing

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--window-size=1400,1200",
)


def open_page(address: str, folder: Path) -> str:
    """The page's text after its scripts have run."""
    if BROWSER is None:
        missing("Chromium: apt-get install chromium")
    command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def server_address(combee: Combee) -> str:
    return f"http://127.0.0.1:{json.loads((combee.home / 'server.json').read_text())['port']}"


def ask(address: str, body: dict[str, Any]) -> Any:
    data, headers = json.dumps(body).encode(), {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=30) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def night(combee: Combee, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished night of 30 traces."""
    folder = tmp_path_factory.mktemp("night")
    (folder / "traces.jsonl").write_bytes(day_jsonl(World(0), 30, 0, date(2026, 3, 2)))
    store, day = f"file://{folder}/store", ("--day", "2026-03-02")
    return combee("nightly", "--traces", folder / "traces.jsonl", *day, "--store", store, "--json").json


def test_the_page_of_a_night_shows_its_epoch(combee: Combee, night: Any, tmp_path: Path) -> None:
    page = open_page(f"{server_address(combee)}/runs/flow-run/{night['flow_run_id']}", tmp_path)
    assert "nightly-playbook-2026-03-02" in page
    assert "Completed" in page


def test_the_summary_says_what_was_learned_and_from_which_traces(combee: Combee, night: Any, tmp_path: Path) -> None:
    address = server_address(combee)
    query = {"artifacts": {"key": {"any_": ["playbook-changes"]}}, "sort": "CREATED_DESC", "limit": 1}
    (artifact,) = ask(f"{address}/api/artifacts/filter", query)
    page = open_page(f"{address}/artifacts/artifact/{artifact['id']}", tmp_path)
    assert "version 1" in page
    assert "New bullets" in page
    assert "day0-00008" in page
    assert "Simulated" in page


def test_the_artifacts_of_a_night_are_there(combee: Combee, night: Any) -> None:
    found = ask(f"{server_address(combee)}/api/artifacts/latest/filter", {"limit": 100})
    assert {"playbook-changes", "accounting", "cost", "progress", "days"} <= {artifact["key"] for artifact in found}
    (accounting,) = [artifact for artifact in found if artifact["key"] == "accounting"]
    assert {"fate": "in", "traces": 30} in json.loads(accounting["data"])
