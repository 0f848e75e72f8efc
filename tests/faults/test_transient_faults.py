"""A night against a provider that fails often, and against one that is dead: real processes on loopback."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest
from command import Combee
from simserver import SimulatedServer, simulated_server

from combee_core.config import ModelSettings
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

TRACES = 200
DAY = date(2026, 3, 2)
BREAKER = ModelSettings().breaker
PASSING = ("429,retry_after=0.5", "529", "500", "timeout", "drop", "empty", "truncated")
RATE = 1 - 0.8 ** (1 / len(PASSING))
"""Of each kind, drawn one after the other, so that 20 % of all calls are hit by one of them."""


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """The day's traces."""
    path = tmp_path / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, 0, DAY))
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A provider on loopback."""
    with simulated_server(tmp_path) as running:
        yield running


def command(traces: Path, address: str, *more: object) -> tuple[object, ...]:
    """A night with the defaults, but for a time-out that does not keep us waiting."""
    where = ("--store", f"file://{traces.parent}/store", "--model", "openai/simulated/overload", "--api-base", address)
    return ("nightly", "--traces", traces, "--day", DAY, *where, "--timeout", 10, "--json", *more)


def inputs(traces: Path, every: int) -> list[str]:
    """A few words of every so-and-so-many-th trace, by which a fault finds it, and no other."""
    texts = [json.loads(line)["input"] for line in traces.read_text().splitlines()]
    found = [max(text.replace("=", ",").split(","), key=len).strip() for text in texts[::every]]
    assert all(sum(part in text for text in texts) == 1 for part in found)
    return found


def passing() -> list[str]:
    """Every kind of passing fault, at the same rate."""
    return [f"kind={kind},rate={RATE:.6f}" for kind in PASSING]


def test_with_a_fifth_of_all_calls_failing_a_night_learns_almost_all_of_its_traces(
    combee: Combee, server: SimulatedServer, night: Path
) -> None:
    server.set_faults(*passing())
    began = time.monotonic()
    done = combee(*command(night, server.url), timeout=900)
    seconds, seen = time.monotonic() - began, server.stats()["stages"].values()
    calls, good = sum(stage["calls"] for stage in seen), sum(stage["ok"] for stage in seen)
    assert done.code == 0, done.err[-3000:]
    table = done.json["accounting"]
    print(f"\ntransient faults: {seconds:.0f} s, {calls} calls, {1 - good / calls:.1%} hit; {table}")
    assert table["in"] == TRACES
    assert table["learned"] + table["nothing"] >= 0.99 * TRACES
    assert 0.1 < 1 - good / calls < 0.3


def test_traces_that_are_refused_for_good_are_named_one_by_one(
    combee: Combee, server: SimulatedServer, night: Path
) -> None:
    refused = inputs(night, 50)
    server.set_faults(*(f"stage=reflect,kind=refusal,contains={text}" for text in refused), *passing())
    done = combee(*command(night, server.url), timeout=900)
    assert done.code == 0, done.err[-3000:]
    table = done.json["accounting"]
    print(f"\nand {len(refused)} traces refused for good: {table}")
    assert table["refused"] == len(refused) == 0.02 * TRACES
    assert table["learned"] + table["nothing"] >= 0.99 * (TRACES - len(refused))
    filed = [json.loads(path.read_text()) for path in (night.parent / "store" / "backlog").rglob("*.json")]
    named = {entry["trace_id"] for shelf in filed for entry in shelf["entries"].values() if entry["fate"] == "refused"}
    assert named == {f"day0-{number:05d}" for number in (1, 51, 101, 151)}


ENDS = {"died since": signal.SIGKILL, "hangs since": signal.SIGSTOP}
"""What ends a server that a night has found alive before, so that the next one looks no more before it begins."""


@contextmanager
def dead(how: str, server: SimulatedServer, known: Callable[[], object]) -> Iterator[str]:
    """The address of a model that is dead in this way; `known` is a night while it was still alive."""
    if how == "no answer":
        with socket.create_server(("127.0.0.1", 0)) as mute:
            yield f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
    elif how == "never there":
        yield "http://127.0.0.1:9/v1"
    else:
        if how in ENDS:
            known()
            server.process.send_signal(ENDS[how])
        if how == "500":
            server.set_faults("kind=500")
        yield server.url
        if how == "hangs since":
            server.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("batch", ["auto", 100])
@pytest.mark.parametrize("how", ["500", "never there", "died since", "hangs since", "no answer"])
def test_with_a_dead_model_a_night_ends_within_a_minute_and_in_one_sentence(
    combee: Combee, server: SimulatedServer, night: Path, how: str, batch: object
) -> None:
    with dead(how, server, lambda: combee(*command(night, server.url, "--limit", 3))) as address:
        began = time.monotonic()
        done = combee(*command(night, address, "--batch-size", batch, "--timeout", 300), timeout=400)
        seconds = time.monotonic() - began
    message, calls = done.json["error"]["message"], sum(done.json["model_calls"].values())
    print(f"\n{how}, batch {batch}: {seconds:.0f} s, {calls} calls: {message}")
    assert done.code == 1
    assert seconds < 60
    # Four attempts a trace, of one batch at most.
    assert calls <= 4 * 100
    assert "openai/simulated/overload" in message
    assert address in message
    assert ("500: simulated" in message) == (how == "500")
    assert message in done.err
    assert message.count(address) <= 2, "one cause, told once"


@pytest.mark.parametrize("at_once", [8, 32])
def test_a_model_that_takes_calls_and_answers_none_costs_a_few_time_outs_not_all_retries_of_all_traces(
    combee: Combee, server: SimulatedServer, night: Path, at_once: int
) -> None:
    server.set_faults("kind=timeout")
    limits = ("--concurrency", at_once, "--max-concurrency", at_once, "--batch-size", 100)
    began = time.monotonic()
    done = combee(*command(night, server.url, *limits), timeout=300)
    seconds = time.monotonic() - began
    message, calls = done.json["error"]["message"], sum(done.json["model_calls"].values())
    print(f"\nhangs, {at_once} at once: {seconds:.0f} s, time-out 10 s, {calls} calls: {message}")
    assert done.code == 1
    assert f"20 × ModelTimeout: openai/simulated/overload: time-out: no whole answer from {server.url}" in message
    rounds = -(-BREAKER // at_once) + 1
    assert calls <= rounds * at_once
