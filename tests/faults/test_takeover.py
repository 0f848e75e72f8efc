"""A night whose worker dies is taken over by another worker, and the slot that it held is free again in time."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from deployed import Deployed, ended, state_of, unless_failed
from disturbed import IN_FLIGHT, Night, until
from simserver import simulated_server

PAUSE = 20.0
"""Seconds between two orders. A run renews its slot for 300 s at a time, and nobody can shorten that."""


def test_a_night_whose_worker_was_killed_is_taken_over_by_another_worker_and_the_next_night_runs(
    deployed: Deployed, tmp_path: Path
) -> None:
    with simulated_server(tmp_path, latency=0.5) as server:
        night = Night(server, f"file://{tmp_path}/store", tmp_path)
        deployed.deploy(night.request)
        first = deployed.worker()
        lost = deployed.order()
        until(lambda: night.calls >= 3, lambda: unless_failed(lost))
        deployed.kill(first)
        killed = time.monotonic()
        saved = night.saved
        night.settled()
        calls = night.calls
        assert calls - saved <= IN_FLIGHT

        deployed.worker()
        tries = [ended(deployed.order())]
        while tries[-1] == "Cancelled":
            time.sleep(PAUSE)
            tries.append(ended(deployed.order()))
        freed = time.monotonic() - killed

        assert tries[-1] == "Completed", deployed.logs()
        assert state_of(lost).name == "Crashed", "whoever takes over says what became of the other"
        print(f"\nworker killed after {calls} calls with {calls - saved} in flight, slot free {freed:.0f} s later")
        print(f"  after {len(tries) - 1} orders that found it taken; taken over, repeated {night.repeated}")
        assert night.repeated <= calls - saved
        assert night.versions == [1]
        assert night.accounted

        next_night = replace(night, day=night.day + timedelta(days=1))
        assert ended(deployed.order(next_night.request)) == "Completed", deployed.logs()
        assert len(night.runs) == 2
