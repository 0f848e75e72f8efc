"""Runs that are stopped, and runs whose Prefect server is: real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from day_files import day_file
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
