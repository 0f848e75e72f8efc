"""Two nights at once on one day, and ten publishers on one pointer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from builders import ACE
from children import together
from command import Combee, Done
from disturbed import FOR_EVER, Night
from simserver import simulated_server

from combee_core.adapters.stores import open_store
from combee_core.versions import Versions

PUBLISHERS = 10

_PUBLISH = """
import os, sys
from builders import ACE, add
from combee_core.adapters.stores import open_store
from combee_core.publish import publish
from combee_core.types import Update
from combee_core.versions import Versions
from run_records import plan, request, states

store, me = open_store(sys.argv[1]), str(os.getpid())
versions = Versions(store, "p")
made = plan(key=me, base_version=0, request=request())
learned = states(Update(operations=(add(f"what process {me} has learned", f"trace-{me}"),)))
print("ready", flush=True)
input()
version, set_aside = publish(made, learned, versions, ACE, flow_run_id=me)
print(version.version, len(set_aside))
"""


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_of_ten_publishers_none_loses_its_version_nor_its_bullet(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = request.getfixturevalue("s3_uri") if kind == "s3" else f"file://{tmp_path}/store"
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    began = time.monotonic()
    said = together(_PUBLISH, uri, PUBLISHERS)
    took = time.monotonic() - began
    chain = list(Versions(open_store(uri), "p").chain())
    print(f"\n{PUBLISHERS} publishers on {kind}: {len(chain)} versions in {took:.1f} s with the processes' start")
    assert sorted(int(line.split()[0]) for line in said.values()) == list(range(1, PUBLISHERS + 1))
    assert {int(line.split()[1]) for line in said.values()} == {0}
    assert [version.version for version in chain] == list(range(PUBLISHERS, 0, -1))
    assert {version.run for version in chain} == set(map(str, said))
    for version in chain:
        assert len(list(ACE.load(version.state).bullets)) == version.version
    texts = {bullet.text for bullet in ACE.load(chain[0].state).bullets}
    assert texts == {f"what process {pid} has learned" for pid in said}


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_of_two_nights_at_once_on_one_day_one_runs_and_the_other_names_it_or_ends_with_the_same_version(
    combee: Combee, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    uri = request.getfixturevalue("s3_uri") if kind == "s3" else f"file://{tmp_path}/store"
    with simulated_server(tmp_path, latency=0.3) as server:
        night = Night(server, uri, tmp_path)
        both = [combee.start(*night.command) for _ in range(2)]
        ended = [(process, *process.communicate(timeout=FOR_EVER)) for process in both]
        done = [Done(process.returncode, out, err) for process, out, err in ended]
        assert 0 in [one.code for one in done]
        for one in done:
            if one.code:
                assert one.code == 1
                assert "held by flow run " in one.json["error"]["message"]
            else:
                assert one.json["version"] == 1
        print(f"\ntwo nights at once on {kind}: exits {[one.code for one in done]}, repeated calls {night.repeated}")
        assert night.repeated == 0
        assert night.versions == [1]
        assert night.accounted
        assert combee(*night.command).json["version"] == 1
