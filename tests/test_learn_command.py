"""`combee learn` from outside: a real Prefect server, a real model server, real stores, counted calls."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Combee, kill
from day_files import day_file
from real_data import TAU_BENCH, needs
from seaweed import Seaweed
from simserver import SimulatedServer, simulated_server

from combee_core.adapters.prefect_api import PrefectApi

MODEL = "openai/simulated/overload"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model on loopback whose answers take a third of a second."""
    with simulated_server(tmp_path, latency=0.3) as running:
        yield running


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """A file of 40 runs of our own."""
    return day_file(tmp_path, 40)


PAPER = ("--batch-size", 40, "--merge", "paper")
"""One batch in the paper's form, whose calls can be counted in the head."""


def over_http(server: SimulatedServer, *more: object) -> tuple[object, ...]:
    return (*PAPER, "--model", MODEL, "--api-base", server.url, "--retry-delay", 0.1, "--json", *more)


def at_most(calls: int) -> tuple[object, ...]:
    """So many calls in flight, from the start to the end."""
    return ("--concurrency", calls, "--max-concurrency", calls)


def logged(combee: Combee, words: str) -> list[str]:
    """Errors in the Prefect server's log that hold these words."""
    port = json.loads((combee.home / "server.json").read_text())["port"]
    errors = {"logs": {"level": {"ge_": logging.ERROR}}}
    found = PrefectApi(f"http://127.0.0.1:{port}/api", {}).find("logs", errors)
    return [line["message"] for line in found if words in line["message"]]


def bullets(combee: Combee, playbook: str, store: str) -> list[dict[str, Any]]:
    shown = combee("playbook", "show", playbook, "--store", store, "--json").json
    return [bullet for section in shown["sections"] for bullet in section["bullets"]]


@needs(TAU_BENCH)
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_hundred_real_runs_are_learned_once_and_every_bullet_names_its_traces(
    combee: Combee, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = f"file://{tmp_path}/store"
    if kind == "s3":
        store = request.getfixturevalue("s3_uri")
        combee = replace(combee, environ=request.getfixturevalue("s3_server").environment())
    command = (
        "learn",
        TAU_BENCH,
        "--playbook",
        "airline",
        "--batch-size",
        40,
        "--model",
        "simulated/overload",
        "--json",
    )

    first = combee(*command, "--store", store).json
    again = combee(*command, "--store", store).json

    assert first["accounting"] == {
        "in": 100, "learned": 51, "nothing": 49, "skipped": 0, "refused": 0, "failed": 0, "deferred": 0,
    }  # fmt: skip
    assert first["simulated"] is True
    assert first["version"] == 1
    assert first["model_calls"]["reflect"] == 100
    assert set(again["model_calls"].values()) == {0}
    assert again["tokens"] == {"this_run": 0, "total": first["tokens"]["total"]}
    assert (again["digest"], again["flow_run_id"]) == (first["digest"], first["flow_run_id"])
    learned = bullets(combee, "airline", store)
    assert learned
    assert all(1 <= len(bullet["sources"]) < 8 for bullet in learned)


@needs(TAU_BENCH)
def test_two_stores_pay_once_each_and_http_learns_what_in_process_learns(
    combee: Combee, server: SimulatedServer, tmp_path: Path
) -> None:
    near = combee("learn", TAU_BENCH, "--limit", 40, "--store", f"file://{tmp_path}/a", *PAPER, "--json").json
    far = [
        combee("learn", TAU_BENCH, "--limit", 40, "--store", f"file://{tmp_path}/{name}", *over_http(server)).json
        for name in ("b", "c")
    ]
    assert [result["digest"] for result in far] == [near["digest"]] * 2
    assert [result["model_calls"] for result in far] == [near["model_calls"]] * 2
    assert set(server.asked().values()) == {2}


def test_a_failed_group_publishes_nothing_and_a_rerun_asks_for_it_and_the_merge_alone(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    store = f"file://{tmp_path}/store"
    server.set_faults("stage=curate,group=3,kind=500")

    failed = combee("learn", day, "--playbook", "p", "--store", store, *over_http(server))
    before = server.asked()

    assert failed.code == 1
    assert failed.json["version"] is None
    assert failed.json["digest"] is None
    assert failed.json["error"]["stage"] == "curate"
    assert failed.json["error"]["item"] == "curate-g03"
    message = failed.json["error"]["message"]
    assert message.startswith(f"curate-g03 failed: ModelFault: {MODEL}: a fault at {server.url} (")
    stack = [text for text in logged(combee, server.url) if "Traceback (most recent call last)" in text]
    assert stack
    assert all("ModelFault" in text.partition("\n")[0] for text in stack)
    assert failed.json["accounting"]["deferred"] > 0
    assert sum(v for k, v in failed.json["accounting"].items() if k != "in") == 40
    assert combee("playbook", "show", "p", "--store", store).code == 2

    server.set_faults()
    rerun = combee("rerun", failed.json["flow_run_id"], "--json").json
    new = server.asked() - before

    assert rerun["model_calls"] == {"rollout": 0, "reflect": 0, "curate": 1, "merge": 1}
    assert sum(new.values()) == 2
    assert rerun["version"] == 1
    assert rerun["accounting"]["deferred"] == 0
    undisturbed = combee("learn", day, "--playbook", "p", "--store", f"file://{tmp_path}/other", *over_http(server))
    assert rerun["digest"] == undisturbed.json["digest"]


@pytest.mark.parametrize("moment", [34], ids=["curating"])
def test_a_killed_run_goes_on_and_pays_for_nothing_twice_but_the_calls_in_flight(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path, moment: int
) -> None:
    in_flight = 4
    command = ("learn", day, "--playbook", "p", *over_http(server, "--batch-size", 30, *at_most(in_flight)))
    undisturbed = combee(*command, "--store", f"file://{tmp_path}/calm").json
    calm = len(server.asked())

    process = combee.start(*command, "--store", f"file://{tmp_path}/store")
    kill_when(process, server, calm + moment)
    resumed = combee(*command, "--store", f"file://{tmp_path}/store").json

    assert resumed["digest"] == undisturbed["digest"]
    assert resumed["accounting"] == undisturbed["accounting"]
    assert resumed["tokens"]["total"] == undisturbed["tokens"]["total"]
    assert sum(resumed["model_calls"].values()) < calm, "saved answers are not asked for again"
    repeated = sum(server.asked().values()) - 2 * calm
    assert 0 <= repeated <= in_flight


def kill_when(process: subprocess.Popen[str], server: SimulatedServer, started: int) -> None:
    """kill -9 when the server has seen so many calls start."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if sum(server.asked().values()) >= started:
            kill(process)
            return
        time.sleep(0.02)
    raise AssertionError(f"the run ended before call {started}: {process.communicate()[1][-2000:]}")


def test_a_second_process_on_a_live_run_is_turned_away_by_name(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    command = ("learn", day, "--store", f"file://{tmp_path}/store", *over_http(server, *at_most(1)))
    first = combee.start(*command)
    while not server.asked():
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    second = combee(*command)
    out, _ = first.communicate(timeout=120)
    assert second.code == 1
    assert "flow run" in second.json["error"]["message"]
    assert first.returncode == 0, out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_new_calls_and_the_same_command_goes_on(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path, number: int
) -> None:
    command = ("learn", day, "--store", f"file://{tmp_path}/store", *over_http(server, *at_most(2), "--hedge", 0))
    process = combee.start(*command)
    while sum(server.asked().values()) < 6:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "go on with: combee rerun " in said
    assert sum(server.asked().values()) < 30, "queued calls are not made"
    done = combee(*command)
    assert done.json["accounting"]["learned"] == 40
    assert max(server.asked().values()) == 1, "answers in flight are saved"
    assert re.search(r"goes on; .*saved in batch 1: [0-9]+ of 40 reflections; to do: ", done.err)


def test_a_prefect_server_that_is_not_there_is_named_in_one_line(combee: Combee, day: Path, tmp_path: Path) -> None:
    elsewhere = replace(combee, environ={"PREFECT_API_URL": "http://127.0.0.1:9/api"})
    done = elsewhere("learn", day, "--model", "simulated/overload", "--store", f"file://{tmp_path}/s", "--json")
    assert done.code == 1
    assert "http://127.0.0.1:9/api does not answer" in done.json["error"]["message"]
    assert "Traceback" not in done.err


def test_samples_are_rolled_out_with_the_playbook_of_the_batch_before(combee: Combee, tmp_path: Path) -> None:
    result = combee(
        "learn", "--samples", "world:24", "--batch-size", 12, "--store", f"file://{tmp_path}/s", "--json"
    ).json
    assert result["model_calls"]["rollout"] == 24
    assert result["accounting"]["in"] == 24
    assert result["accounting"]["nothing"] > 0, "the second batch knows some rules already"


@pytest.mark.parametrize(
    "args",
    [
        ("learn",),
        ("learn", "nowhere.json", "--json"),
        ("learn", "x", "--samples", "y"),
        ("learn", "x", "--batch-size", "0"),
        ("learn", "x", "--playbook", "a/b"),
        ("rerun", "not-an-id"),
        ("playbook", "show", "nothing-here"),
        ("learn", "x", "--store", "ftp://host/x"),
    ],
)
def test_wrong_use_ends_with_2_and_one_clear_line(combee: Combee, tmp_path: Path, args: tuple[str, ...]) -> None:
    done = replace(combee, cwd=tmp_path, environ={})(*args)
    assert done.code == 2, done.err
    assert "Traceback" not in done.out
    assert any(line.startswith("combee: ") for line in done.err.splitlines()) or "usage:" in done.err


def test_an_empty_day_is_a_success_without_calls(combee: Combee, day: Path, tmp_path: Path) -> None:
    done = combee("nightly", "--traces", day, "--day", "2001-01-01", "--store", f"file://{tmp_path}/s", "--json").json
    assert done["accounting"]["in"] == 0
    assert done["version"] == 0
    assert set(done["model_calls"].values()) == {0}


def test_seaweed_is_there_for_the_s3_tests(s3_server: Seaweed) -> None:
    assert s3_server.endpoint.startswith("http://127.0.0.1:")
