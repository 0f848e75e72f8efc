"""Faults of a provider, met by the whole pipeline: a real flow, litellm, and a server that behaves badly on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from day_files import day_file
from simserver import SimulatedServer, simulated_server

PASSING = (
    "429,retry_after=0.2",
    "529",
    "500",
    "drop",
    "timeout",
    "empty",
    "malformed",
    "truncated",
    "reasoning_unclosed",
)
HARMLESS = ("fenced", "bare_array", "reasoning")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model on loopback."""
    with simulated_server(tmp_path) as running:
        yield running


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """Thirty runs of our own."""
    return day_file(tmp_path, 30)


def learn(server: SimulatedServer, day: Path, store: Path, *more: object) -> tuple[object, ...]:
    where = ("--model", "openai/simulated/overload", "--api-base", server.url, "--store", f"file://{store}")
    return ("learn", day, *where, "--batch-size", 40, "--timeout", 2, "--retry-delay", 0.05, "--json", *more)


def test_every_passing_fault_is_got_over_and_every_trace_learned(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    one_each = [f"stage=reflect,kind={kind},count=1" for kind in PASSING]
    one_a_group = [f"stage=curate,group={g},kind={kind},count=1" for g, kind in enumerate(PASSING[4:], start=1)]
    server.set_faults(*one_each, *one_a_group)
    # A retry may meet the next fault, so there are as many retries as faults.
    done = combee(*learn(server, day, tmp_path / "store", "--retries", len(PASSING)))
    assert done.code == 0, done.err[-2000:]
    assert done.json["accounting"]["learned"] == 30
    sent = server.asked()
    assert sum(sent.values()) == len(sent) + len(one_each) + len(one_a_group)


def test_answers_in_odd_clothes_say_what_they_would_say_naked(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    plain = combee(*learn(server, day, tmp_path / "plain")).json
    server.set_faults(*(f"stage=curate,group={g},kind={kind}" for g, kind in enumerate(HARMLESS, start=1)))
    dressed = combee(*learn(server, day, tmp_path / "dressed")).json
    assert dressed["digest"] == plain["digest"]
    assert dressed["model_calls"] == plain["model_calls"]


@pytest.mark.parametrize("kind", ["refusal", "filter"])
def test_a_refused_trace_is_named_and_the_others_are_learned(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path, kind: str
) -> None:
    server.set_faults(f"stage=reflect,kind={kind},count=1")
    done = combee(*learn(server, day, tmp_path / "store"))
    assert done.json["accounting"]["refused"] == 1
    assert done.json["accounting"]["learned"] == 29
    assert max(server.asked().values()) == 1, "a refusal is not asked again"
    assert list((tmp_path / "store" / "backlog").rglob("*.json"))


def test_a_group_that_is_always_cut_is_learned_in_halves(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    server.set_faults("stage=curate,group=2,kind=truncated,count=2")
    done = combee(*learn(server, day, tmp_path / "store"))
    assert done.json["accounting"]["learned"] == 30, done.err[-2000:]
    assert done.json["model_calls"]["curate"] == 5 + 1 + 2


def test_too_many_failed_reflections_fail_the_run_before_it_curates(
    combee: Combee, server: SimulatedServer, day: Path, tmp_path: Path
) -> None:
    server.set_faults("stage=reflect,kind=500,rate=0.5")
    done = combee(*learn(server, day, tmp_path / "store", "--retries", 0))
    assert done.code == 1
    assert done.json["error"]["stage"] == "reflect"
    assert done.json["version"] is None
    assert done.json["model_calls"]["curate"] == 0
    assert "reflections failed" in done.json["error"]["message"]


def test_a_dead_server_ends_the_run_at_once_with_its_address(combee: Combee, day: Path, tmp_path: Path) -> None:
    store, model = f"file://{tmp_path}/store", "openai/simulated/overload"
    done = combee("learn", day, "--store", store, "--model", model, "--api-base", "http://127.0.0.1:9/v1", "--json")
    assert done.code == 1
    assert "http://127.0.0.1:9" in done.json["error"]["message"]
    assert set(done.json["model_calls"].values()) == {0}
