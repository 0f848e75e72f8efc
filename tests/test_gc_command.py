"""`combee gc`, `combee alarms setup` and `combee doctor --deep` as they are called."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fake_provider import FakeProvider, answer

from combee_core.adapters.prefect_server import in_use
from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import close
from combee_core.cli import main

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder as a store, in a home without a server."""
    monkeypatch.setenv("COMBEE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "client"))
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"):
        monkeypatch.delenv(name, raising=False)
    yield f"file://{tmp_path}/store"
    close()


def put(store: str, key: str, days: float) -> None:
    """An object that was written so many days ago."""
    its = open_store(store)
    assert its.create(key, b"12345")
    path = Path(store.removeprefix("file://")) / key
    then = path.stat().st_mtime - days * DAY
    os.utime(path, (then, then))


def test_what_would_go_is_said_and_then_goes(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    put(store, "answers/ab/old.json", 3)
    put(store, "answers/ab/new.json", 1)
    assert main(["gc", "--keep-days", "2", "--store", store, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "saved answers: 1 would be deleted, 5 bytes" in said
    assert "no Prefect server is running: its history stays" in said
    assert main(["gc", "--keep-days", "2", "--store", store, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["objects"]["saved answers"], report["dry_run"], report["history"]) == (1, False, None)
    assert open_store(store).list("") == ["answers/ab/new.json"]


def test_a_server_that_does_not_answer_costs_its_history_alone_and_is_no_success(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    put(store, "answers/ab/old.json", 3)
    assert main(["gc", "--keep-days", "2", "--store", store]) == 1
    assert "Prefect's history stays: POST http://127.0.0.1:9/api/flow_runs/filter" in capsys.readouterr().out
    assert open_store(store).list("") == []


def test_days_must_be_named(store: str) -> None:
    with pytest.raises(SystemExit):
        main(["gc", "--store", store])


@pytest.mark.parametrize(("beat", "silence"), [(None, "539"), ("300", "899")])
def test_a_silence_that_a_living_run_keeps_is_refused(
    store: str, beat: str | None, silence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if beat:
        monkeypatch.setenv("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", beat)
    assert main(["alarms", "setup", "--silence", silence]) == 2
    assert f"at least {int(silence) + 1} s" in capsys.readouterr().err


def looked(store: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """Exit code and what `doctor --deep` says, by check."""
    code = main(["doctor", "--deep", "--store", store, "--json", *more])
    checks = json.loads(capsys.readouterr().out)["checks"]
    return {"code": code, **{check["check"]: check for check in checks}}


def test_a_closer_look_names_what_is_missing_and_how_to_get_it(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = looked(store, capsys, "--playbook", "support")
    assert found["code"] == 1
    failing = {name for name, check in found.items() if name != "code" and not check["ok"]}
    assert failing == {"days", "prefect", "its clock", "watching", "firing", "running"}
    assert found["prefect"]["says"] == "no Prefect server is running; combee server up"
    assert "schedule" in found["days"]["says"]
    assert "GiB free" in found["disk"]["says"]
    assert [key for key in open_store(store).list("") if key.startswith("probe/")] == []


@pytest.mark.parametrize(("kind", "looks"), [("traces", True), ("samples", False)])
def test_a_file_of_samples_has_no_days_to_be_missing(
    kind: str, looks: bool, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'[source]\nkind = "{kind}"')
    assert ("days" in looked(store, capsys, "--config", str(file))) is looks


@pytest.mark.parametrize("named_in", ["options", "file"])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_last_days_are_those_of_the_zone_that_is_named(
    zone: str, named_in: str, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one of these zones it is always another day than in UTC."""
    today = datetime.now(ZoneInfo(zone)).date()
    for ago in range(1, 8):
        open_store(store).create(f"days/support/source/{today - timedelta(days=ago)}.json", b"{}")
    file = tmp_path / "night.toml"
    file.write_text(
        f'playbook = "support"\nstore = "{store}"\n[source]\ntimezone = "{zone}"\n[settings.model]\nretries = 7'
    )
    options = ["--store", store, "--playbook", "support", "--timezone", zone]
    main(["doctor", "--deep", "--json", *(options if named_in == "options" else ["--config", str(file)])])
    checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["days"]["says"] == "all marked"
    assert checks["store"]["says"].startswith(store)
    assert ("(7 retries + 1)" in checks["requests"]["says"]) == (named_in == "file")


def test_an_unknown_zone_is_wrong_use(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--store", store, "--timezone", "Mars/Base"]) == 2
    assert "unknown time zone 'Mars/Base'" in capsys.readouterr().err


def test_the_model_is_asked_once_and_its_price_is_known_or_not(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProvider([answer("yes")]) as provider:
        found = looked(store, capsys, "--model", "openai/served", "--api-base", provider.url)
    assert "its price is not known" in found["call openai/served"]["says"]
    assert "answered in" in found["call openai/served"]["says"]


def test_a_configured_server_goes_before_ones_own_and_there_may_be_neither(tmp_path: Path) -> None:
    nowhere = {"COMBEE_HOME": str(tmp_path), "PREFECT_HOME": str(tmp_path)}
    assert in_use({**nowhere, "PREFECT_API_URL": "http://127.0.0.1:9/api"}) == ("http://127.0.0.1:9/api", None)
    assert in_use(nowhere) == (None, None)


def test_each_model_that_may_be_asked_is_asked(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProvider([answer("yes")] * 3) as first, FakeProvider([answer("yes")]) as second:
        named = ("--model", "openai/served", "--api-base", first.url, "--fallback-model")
        found = looked(store, capsys, *named, f"openai/spare@{second.url}")
        assert {name for name in found if name.startswith("call ")} == {"call openai/served", "call openai/spare"}
        assert "answered in" in found["call openai/spare"]["says"]
        twice = looked(store, capsys, *named, f"curate=openai/served@{second.url}")
    assert {f"call openai/served at {first.url}", f"call openai/served at {second.url}"} <= set(twice)
