"""`combee runs` and `combee rerun` from outside: what failed is listed, what is left is said before it is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from day_files import day_file
from simserver import SimulatedServer, simulated_server

MODEL = "openai/simulated/overload"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path, latency=0.05) as running:
        yield running


@pytest.fixture
def day(tmp_path: Path) -> Path:
    return day_file(tmp_path, 12)


def test_what_failed_is_listed_explained_without_a_call_and_then_gone_on_with(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    store = ("--store", f"file://{tmp_path}/store")
    over_http = (
        "--model",
        MODEL,
        "--api-base",
        server.url,
        "--retry-delay",
        0.1,
        "--batch-size",
        12,
        "--merge",
        "paper",
    )
    server.set_faults("stage=curate,group=2,kind=500")
    failed = combee("learn", day, "--playbook", "p", *store, *over_http, "--json")
    before = server.asked()

    (listed,) = combee("runs", *store, "--json").json["runs"]
    text = combee("runs", "--playbook", "p", *store).out
    (explained,) = combee("rerun", listed["run"], "--explain", *store, "--json").json["runs"]
    elsewhere = combee("rerun", failed.json["flow_run_id"], "--dry-run").out

    assert (failed.code, listed["state"], listed["traces"]) == (1, "failed", 12)
    assert (listed["batches_done"], listed["batches_planned"]) == (0, 1)
    assert (listed["failure"]["stage"], listed["failure"]["item"]) == ("curate", "curate-g02")
    assert listed["flow_run_id"] == failed.json["flow_run_id"]
    assert f"combee rerun {listed['flow_run_id']}" in text
    whole = f"curate-g02 failed: ModelFault: {MODEL}: a fault at {server.url} ("
    assert f"    curate: {whole}" in text
    assert any(whole in line and "500" in line for line in failed.err.splitlines())
    assert explained["reflections"] == {"saved": 12, "of": 12, "missing": []}
    assert explained["groups"]["missing"] == ["curate-g02"]
    assert "12 of 12 reflections" in elsewhere, "a flow run's own store is found"
    assert "to do: groups curate-g02; the merge of batch 1; then one version is published" in elsewhere
    assert server.asked() == before

    server.set_faults()
    done = combee("rerun", listed["run"], *store, "--json")
    again = combee("rerun", listed["run"], *store, "--json")

    assert done.json["model_calls"] == {"rollout": 0, "reflect": 0, "curate": 1, "merge": 1}
    assert "to do: groups curate-g02" in done.err
    assert done.json["flow_run_id"] == listed["flow_run_id"]
    assert (again.code, again.json["digest"], sum(again.json["model_calls"].values())) == (0, done.json["digest"], 0)
    assert "nothing is to be done" in again.err
    (listed,) = combee("runs", *store, "--json").json["runs"]
    assert (listed["state"], listed["batches_done"], listed["failure"]) == ("done", 1, None)


def test_a_store_without_runs_and_an_unknown_run_are_said_in_a_line(combee: Combee, tmp_path: Path) -> None:
    store = ("--store", f"file://{tmp_path}/store")
    empty = combee("runs", *store)
    unknown = combee("rerun", "0" * 20, *store)
    assert (empty.code, empty.out) == (0, f"no runs in file://{tmp_path}/store\n")
    assert json.loads(combee("runs", *store, "--json").out) == {"runs": []}
    assert unknown.code == 2
    assert f"has no run {'0' * 20}" in unknown.err
