"""A store on a disk that is full: the night says so, nothing is damaged, and it goes on when there is space."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from disturbed import Night
from missing import missing
from simserver import simulated_server

PAGES = 25
"""Blocks of 4 KiB that the small disk has: enough for the plan and some answers, not for a night."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own, with so little space."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * PAGES}k", "combee-test", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        missing("the right to mount a small disk: run the tests as root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_night_on_a_full_disk_says_so_damages_nothing_and_goes_on_when_there_is_space(
    combee: Combee, small_disk: Path, tmp_path: Path
) -> None:
    with simulated_server(tmp_path, latency=0.1) as server:
        night = Night(server, f"file://{small_disk}/store", tmp_path)
        full = combee(*night.command)
        assert full.code == 1
        said = full.json["error"]["message"]
        assert "No space left on device" in said
        assert "free some space" in said
        assert any(line.startswith("combee: ") and "No space left" in line for line in full.err.splitlines())
        assert night.latest is None
        whole = list((small_disk / "store").rglob("*.json"))
        for path in whole:
            json.loads(path.read_text())
        assert not list(small_disk.rglob("*.tmp"))
        calls, saved = night.calls, night.saved

        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        done = combee(*night.command)

        assert done.code == 0, done.err
        print(f"\nfull disk: {said}")
        print(f"  {len(whole)} records whole; calls {calls}, answers saved {saved}, repeated {night.repeated}")
        assert night.repeated == calls - saved
        assert night.accounted
        calm = Night(server, f"file://{tmp_path}/calm", tmp_path)
        assert combee(*calm.command).json["digest"] == done.json["digest"]
