"""A month of nights: thirty days of twenty traces backfilled through two kill -9, against thirty nights in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest
from command import Combee, kill
from seaweed import Seaweed
from simserver import SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.ports import Store
from combee_core.records import RunResult
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Versions
from flows.nightly import nightly

FIRST, DAYS, TRACES = date(2026, 9, 1), 30, 20
RANGE = f"{FIRST}..{FIRST + timedelta(days=DAYS - 1)}"
KILLED_AFTER = (7, 19)
IN_FLIGHT = 8
MODEL = "openai/simulated/overload"


@dataclass(frozen=True)
class Nights:
    """What thirty nights make, what they ask for, and how long they take."""

    digest: str
    calls: int
    seconds: float


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of traces for each day."""
    folder = tmp_path_factory.mktemp("month")
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        (folder / f"{day}.jsonl").write_bytes(day_jsonl(World(0), TRACES, number + 1, day))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    """The stand-in over HTTP: its log counts every call, and its address is part of what a night is asked with."""
    with simulated_server(tmp_path_factory.mktemp("model"), latency=0.02) as server:
        yield server


@pytest.fixture(scope="module")
def in_order(month: Path, model: SimulatedServer, prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """One night after the other, in this process."""
    began, digest = time.monotonic(), None
    store = f"file://{tmp_path_factory.mktemp('nights')}/store"
    asked = ModelSettings(model=MODEL, api_base=model.url, hedge=0, concurrency=IN_FLIGHT, max_concurrency=IN_FLIGHT)
    logging.disable(logging.INFO)  # a thousand lines, among which nobody would find the figures
    try:
        for number in range(DAYS):
            source = Source(uris=(str(month),), day=FIRST + timedelta(days=number))
            settings = RunSettings(batch_size=40, model=asked)
            result: RunResult = nightly(RunRequest(playbook="p", store=store, source=source, settings=settings))
            assert result.accounting.total == TRACES
            digest = result.digest
    finally:
        logging.disable(logging.NOTSET)
    assert digest is not None
    return Nights(digest, model.stats()["total"], time.monotonic() - began)


@pytest.mark.parametrize("where", ["file", "s3"])
def test_a_month_backfilled_through_two_kills_is_thirty_nights_in_order(
    combee: Combee,
    month: Path,
    model: SimulatedServer,
    in_order: Nights,
    where: str,
    s3_server: Seaweed,
    s3_uri: str,
    tmp_path: Path,
) -> None:
    uri = s3_uri if where == "s3" else f"file://{tmp_path}/store"
    its = Combee(combee.home, {**combee.environ, **(s3_server.environment() if where == "s3" else {})})
    limits = ("--concurrency", IN_FLIGHT, "--max-concurrency", IN_FLIGHT, "--hedge", 0, "--batch-size", 40)
    command = ("backfill", RANGE, "--traces", month, "--playbook", "p", "--store", uri, *limits)
    command = (*command, "--model", MODEL, "--api-base", model.url, "--json")
    store, asked, began = open_store(uri), model.stats()["total"], time.monotonic()
    for days in KILLED_AFTER:
        process = its.start(*command)
        _wait_for(store, days, model)
        kill(process)
    before = model.stats()["total"]
    done = its(*command, timeout=1200)
    assert done.code == 0, done.err[-3000:]
    made, seconds = done.json, time.monotonic() - began
    assert made["digest"] == in_order.digest
    assert [line["day"] for line in made["days"]] == [str(FIRST + timedelta(days=n)) for n in range(DAYS)]
    happened = [line["happened"] for line in made["days"]]
    assert happened.count("already learned") >= KILLED_AFTER[-1]
    assert all(line["traces"] == TRACES for line in made["days"])
    assert sum(made["model_calls"].values()) == model.stats()["total"] - before, "it says what it asked for"

    calls = model.stats()["total"] - asked
    repeated = calls - in_order.calls
    assert repeated <= len(KILLED_AFTER) * IN_FLIGHT, "more than was in flight at the kills"
    again = its(*command).json
    assert model.stats()["total"] == asked + calls, "a second backfill makes no model call"
    assert (again["digest"], sum(again["model_calls"].values())) == (in_order.digest, 0)
    versions = list(Versions(store, "p").chain())
    assert [v.day for v in reversed(versions)] == sorted({v.day for v in versions if v.day}), "each day once, in order"
    print(f"\n{DAYS} days of {TRACES} traces on {where}://, killed in the days after {KILLED_AFTER}:")
    print(f"  nights in order: {in_order.calls} calls in {in_order.seconds:.0f} s, digest {in_order.digest[:12]}")
    print(f"  backfill: {calls} calls in {seconds:.0f} s, repeated {repeated}, digest {made['digest'][:12]}")
    print(f"  {len(versions)} versions; a second backfill: {sum(again['model_calls'].values())} calls")


def _wait_for(store: Store, days: int, model: SimulatedServer) -> None:
    """Until so many days are marked and the next one has begun to ask."""
    deadline = time.monotonic() + 900
    while len(store.list("days/")) < days:
        assert time.monotonic() < deadline, "it never got so far"
        time.sleep(0.2)
    asked = model.stats()["total"]
    while model.stats()["total"] == asked:
        assert time.monotonic() < deadline, "the next day never began"
        time.sleep(0.05)


def test_a_day_that_fails_again_does_not_keep_tonights_traces_from_being_learned(
    combee: Combee, tmp_path: Path
) -> None:
    today = date.today()
    traces = tmp_path / "traces"
    traces.mkdir()
    for back in (2, 1):
        rows = day_jsonl(World(0), TRACES, back, today - timedelta(days=back))
        (traces / f"{back}.jsonl").write_bytes(rows.replace(b'"input": "', b'"input": "poison ') if back == 2 else rows)
    with simulated_server(tmp_path, faults=["stage=reflect,kind=malformed,contains=poison"]) as server:
        asked = ("--model", MODEL, "--api-base", server.url, "--retries", 0, "--hedge", 0, "--json")
        command = ("nightly", "--traces", traces, "--lookback", 3, "--store", f"file://{tmp_path}/store", *asked)
        night = combee(*command)
        assert night.code == 1
        said = night.json
        assert [line["happened"] for line in said["days"]] == ["failed", "learned"]
        assert said["error"]["message"].startswith(f"{today - timedelta(days=2)}: ")
        assert "the other days were learned" in said["error"]["message"]
        server.set_faults()
        mended = combee("rerun", said["flow_run_id"], "--json").json
    assert [line["happened"] for line in mended["days"]] == ["learned", "learned"]
    assert mended["accounting"]["learned"] == 2 * TRACES
