"""Runs that are stopped, and runs whose Prefect server is: real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, Combee
from day_files import day_file
from prefect_http import address, api
from simserver import SimulatedServer, simulated_server

MODEL = "openai/simulated/overload"
AT_FOUR = ("--concurrency", 4, "--max-concurrency", 4, "--hedge", 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path, latency=1.0) as running:
        yield running


@pytest.fixture
def day(tmp_path: Path) -> Path:
    return day_file(tmp_path, 40)


def begun(combee: Combee, server: SimulatedServer, *args: object) -> subprocess.Popen[str]:
    """A command that has made some calls."""
    process = combee.start(*args, "--model", MODEL, "--api-base", server.url, *AT_FOUR, "--json")
    while sum(server.asked().values()) < 6:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def until(look: Callable[[], Any], patience: float = 300) -> Any:
    """What `look` gives as soon as it gives something."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.5)
    raise AssertionError(f"waited {patience} s in vain for {look}")


def test_a_second_ctrl_c_ends_at_once_and_nothing_that_is_saved_is_asked_again(
    combee: Combee, day: Path, tmp_path: Path
) -> None:
    command = ("learn", day, "--store", f"file://{tmp_path}/store")
    with simulated_server(tmp_path, latency=20) as slow:
        process = combee.start(*command, "--model", MODEL, "--api-base", slow.url, *AT_FOUR)
        while sum(slow.asked().values()) < 4:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(1)
        _, said = process.communicate(timeout=15)
        assert process.returncode == 130
        assert "Ctrl-C once more ends at once" in said
        assert "what is saved stays saved: combee rerun " in said


def test_a_run_survives_a_prefect_server_that_is_killed_and_started_anew(
    server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    own = Combee(tmp_path / "home")
    assert own("server", "up").code == 0
    try:
        process = begun(own, server, "learn", day, "--store", f"file://{tmp_path}/store", "--batch-size", 40)
        os.kill(json.loads((own.home / "server.json").read_text())["pid"], signal.SIGKILL)
        time.sleep(5)
        assert own("server", "up").code == 0
        out, said = process.communicate(timeout=400)
        assert process.returncode == 0, said
        assert json.loads(out)["accounting"]["learned"] == 40
        assert max(server.asked().values()) == 1
    finally:
        own("server", "down")


def test_a_run_whose_prefect_server_is_gone_for_good_ends_with_a_reason_and_goes_on_elsewhere(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    own, command = Combee(tmp_path / "home"), ("learn", day, "--store", f"file://{tmp_path}/store", "--batch-size", 40)
    assert own("server", "up").code == 0
    process = begun(own, server, *command)
    os.kill(json.loads((own.home / "server.json").read_text())["pid"], signal.SIGKILL)
    _, said = process.communicate(timeout=500)
    assert process.returncode == 1
    assert "has not answered for" in said
    (seen,) = combee("runs", "--store", f"file://{tmp_path}/store", "--json").json["runs"]
    assert (seen["state"], seen["failure"]["stage"]) == ("failed", "server")
    done = combee("rerun", seen["run"], "--store", f"file://{tmp_path}/store", "--json").json
    assert done["version"] == 1
    assert max(server.asked().values()) == 1, "the other server knows nothing of it; the store knows all"


_SERVE = """
import sys
from prefect import serve
from flows.nightly import nightly
if __name__ == "__main__":
    serve(nightly.to_deployment(sys.argv[1]), pause_on_shutdown=False)
"""


def test_retry_in_the_ui_of_a_served_night_asks_for_what_is_missing_alone(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    (tmp_path / "serve.py").write_text(_SERVE)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    own = {"PREFECT_API_URL": address(combee), "PREFECT_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environ = {**kept, **own, "OPENAI_API_KEY": "none", "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    name = f"stops-{os.getpid()}"
    command = [sys.executable, str(tmp_path / "serve.py"), name]
    with subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True) as process:
        try:
            deployment = until(lambda: _named(combee, name))
            server.set_faults("stage=curate,group=2,kind=500")
            model = {"model": MODEL, "api_base": server.url, "retry_delay": 0.1}
            request = {
                "playbook": "p",
                "store": f"file://{tmp_path}/store",
                "source": {"uris": [str(day)], "day": "2026-03-02"},
                "settings": {"batch_size": 40, "merge": "paper", "model": model},
            }
            made = api(
                combee,
                f"/deployments/{deployment}/create_flow_run",
                {"parameters": {"request": request}, "state": {"type": "SCHEDULED"}},
            )
            run = f"/flow_runs/{made['id']}"
            until(lambda: api(combee, run)["state"]["type"] == "FAILED")
            explained = combee("rerun", made["id"], "--explain").out
            assert "to do: groups curate-g02; the merge of batch 1; then one version is published" in explained
            before = sum(server.asked().values())
            server.set_faults()
            again = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": False}
            assert api(combee, f"{run}/set_state", again)["status"] == "ACCEPT"
            until(lambda: api(combee, run)["state"]["type"] == "COMPLETED")
            assert sum(server.asked().values()) - before == 2
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _named(combee: Combee, name: str) -> str:
    found = api(combee, "/deployments/filter", {"deployments": {"name": {"any_": [name]}}})
    return str(found[0]["id"]) if found else ""
