"""What people look at: pages of the real Prefect UI in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import Combee
from missing import missing

from combee_core.config import Source
from combee_core.run_file import RunFile
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.serving import SERVED, deployments, register

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


class Shown(NamedTuple):
    """A field as a form shows it: its label, the words below, the first control (a table has none) and its choices."""

    label: str
    words: str
    control: str
    choices: tuple[str, ...] = ()


def shown(page: str) -> Iterator[Shown]:
    """The fields of a form, tables before what is in them."""
    for part in page.split('schema-form-property__label">')[1:]:
        words = re.search(r"markdown-renderer__text[^>]*>([^<]*)<", part)
        control = re.search(r'<input type="(\w+)"|<(select|textarea)', part)
        choices = tuple(re.findall(r'<option[^>]*value="(\w+)"', part))
        label = part.partition("<")[0].removesuffix(" (Optional)")
        yield Shown(label, words[1] if words else "", next(filter(None, control.groups())) if control else "", choices)


DAYS = {"backfill": ["First", "Last"], "nightly": ["Day"], "profile": ["Day"]}
CHOICES = {"Kind": ("traces", "samples", "backlog"), "Merge": ("paper", "cluster", "auto"), "Batch Size": ("auto",)}


def test_the_form_of_each_deployment_asks_for_days_and_choices_in_words(
    combee: Combee, prefect_api: str, tmp_path: Path
) -> None:
    file = RunFile(playbook="support", source=Source(uris=("s3://bucket/traces",), timezone="Europe/Berlin"))
    made = deployments(file, uuid.uuid4().hex[:8])
    ids = register(made)[1].values()
    for flow, known_as in zip(SERVED, ids, strict=True):
        page = open_page(f"{server_address(combee)}/deployments/deployment/{known_as}/run", tmp_path)
        fields = list(shown(page))
        assert [field.label for field in fields if not field.words] == []
        assert [field.label for field in fields if field.control == "date"] == DAYS[flow.name]
        zone = Shown("Time zone", "Whose midnight ends a day, such as Europe/Berlin", "textarea")
        assert fields.count(zone) == 1
        selects = {field.label: field.choices for field in fields if field.control == "select"}
        assert selects.items() >= CHOICES.items()
        assert ("Missed" in selects) == (flow.name == "nightly")
        if flow.name == "backfill":
            assert fields[:3] == [
                Shown("days", "The first and the last day, in the source's time zone.", ""),
                Shown("First", "The first day", "date"),
                Shown("Last", "The last day, included", "date"),
            ]
