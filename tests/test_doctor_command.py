"""`combee doctor` and `combee server`: a line each, with the way out."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, Combee
from simserver import simulated_server

from combee_core.cli.doctor import PACKAGES, versions
from combee_core.errors import CombeeError


def checks(done: Any) -> dict[str, Any]:
    return {check["check"]: check for check in done.json["checks"]}


def test_all_is_well_with_the_stand_in_and_a_folder(combee: Combee, tmp_path: Path) -> None:
    done = combee("doctor", "--store", f"file://{tmp_path}/store", "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    found = checks(done)
    assert list(found) == ["model", "requests", "store", "server", "flows", "versions"]
    assert "simulated" in found["model"]["says"]
    assert "at most 56 for one prompt" in found["requests"]["says"]
    assert "prefect 3." in found["versions"]["says"]


def test_a_model_over_http_is_asked(combee: Combee, tmp_path: Path) -> None:
    with simulated_server(tmp_path) as server:
        model = ("--model", "openai/simulated/overload", "--api-base", server.url)
        done = combee("doctor", "--store", f"file://{tmp_path}/store", *model, "--json")
    assert done.code == 0
    assert "is reachable" in checks(done)["model"]["says"]


@pytest.mark.parametrize(
    ("args", "check", "word"),
    [
        (("--model", "gpt4o-typo"), "model", "provider/name"),
        (("--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1"), "model", "127.0.0.1:9"),
        (("--store", "s3://nobodys-bucket/x"), "store", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(
    combee: Combee, tmp_path: Path, args: tuple[str, ...], check: str, word: str
) -> None:
    bare = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_CONFIG_FILE": os.devnull,
    }
    done = replace(combee, environ=bare, cwd=tmp_path)("doctor", *args, "--json")
    assert done.code == 1
    found = checks(done)[check]
    assert found["ok"] is False
    assert word in found["says"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package alone, as an installation has it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "combee_core", site / "combee_core", ignore=shutil.ignore_patterns("__pycache__"))
    return site


@pytest.mark.parametrize(
    ("named", "ok", "said"),
    [
        ({"COMBEE_CHECKOUT": str(ROOT)}, True, f"found in {ROOT}"),
        ({"COMBEE_CHECKOUT": "/nowhere"}, False, "COMBEE_CHECKOUT=/nowhere is no checkout"),
        ({}, False, "or name one in COMBEE_CHECKOUT"),
    ],
    ids=["named", "wrong", "not named"],
)
def test_outside_the_checkout_the_flows_are_where_the_variable_says(
    combee: Combee, installed: Path, tmp_path: Path, named: dict[str, str], ok: bool, said: str
) -> None:
    outside = replace(combee, environ={"PYTHONPATH": str(installed), **named}, cwd=tmp_path)
    found = checks(outside("doctor", "--json"))["flows"]
    assert found["ok"] == ok, found
    assert said in found["says"]


def test_a_package_that_is_missing_is_found_before_the_night() -> None:
    assert "tenacity" in PACKAGES
    with pytest.raises(CombeeError, match="no-such-package not installed: pip install"):
        versions(["prefect", "no-such-package"])


def test_a_configured_server_that_is_not_there_is_named(combee: Combee, tmp_path: Path) -> None:
    elsewhere = replace(combee, environ={"PREFECT_API_URL": "http://127.0.0.1:9/api"})
    done = elsewhere("doctor", "--store", f"file://{tmp_path}/store", "--json")
    assert checks(done)["server"]["ok"] is False
    assert "unset PREFECT_API_URL" in checks(done)["server"]["says"]
    assert "left alone" in elsewhere("server", "status").out or "leaves it alone" in elsewhere("server", "status").out


def test_a_server_is_found_again_and_not_started_twice(combee: Combee) -> None:
    before = json.loads((combee.home / "server.json").read_text())
    assert combee("server", "up").code == 0
    assert combee("server", "status").code == 0
    assert json.loads((combee.home / "server.json").read_text()) == before


def test_without_a_server_status_says_how_to_start_one(combee: Combee, tmp_path: Path) -> None:
    alone = replace(combee, home=tmp_path / "home")
    done = alone("server", "status")
    assert done.code == 1
    assert "combee server up" in done.out
    assert alone("server", "down").out.strip() == "no server was running"


def test_a_stale_record_is_not_taken_for_a_server(combee: Combee, tmp_path: Path) -> None:
    record = json.loads((combee.home / "server.json").read_text())
    (tmp_path / "server.json").write_text(json.dumps({**record, "pid": os.getpid()}))
    assert replace(combee, home=tmp_path)("server", "status").code == 1
