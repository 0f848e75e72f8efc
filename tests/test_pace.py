"""How long a stage will take: waves of calls, the slowest of them, and the limits for a minute."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.config import ModelSettings
from combee_core.pace import MEDIANS, Stage, batch_seconds, stage_seconds
from combee_core.simulation.delays import MEDIANS as SIMULATED
from combee_core.simulation.delays import delay

MODEL = ModelSettings(concurrency=32, max_concurrency=256)
FEW = ModelSettings(concurrency=4, max_concurrency=4)


def reflect(calls: float, model: ModelSettings = MODEL, spread: float = 0.0, tokens: float = 0.0) -> float:
    return stage_seconds(Stage("reflect", calls, tokens), model, spread=spread)


def test_without_calls_no_time_passes() -> None:
    assert reflect(0) == 0


@pytest.mark.parametrize("calls", [1, 7, 32])
def test_what_is_in_flight_at_once_takes_the_time_of_one_call(calls: int) -> None:
    assert reflect(calls) == 24


@pytest.mark.parametrize(("calls", "trips"), [(4, 1), (8, 2), (40, 10), (42, 10.5)])
def test_beyond_that_calls_wait_for_their_turn(calls: int, trips: float) -> None:
    assert reflect(calls, FEW) == pytest.approx(24 * trips)


def test_the_calls_in_flight_double_up_to_the_most() -> None:
    assert reflect(32 + 64 + 128 + 256 + 256) == pytest.approx(24 * 5)


def test_processes_together_use_the_whole_number_rounded_down() -> None:
    assert reflect(30, ModelSettings(concurrency=32, max_concurrency=32, processes=3)) == 24
    assert reflect(32, ModelSettings(concurrency=32, max_concurrency=32, processes=3)) > 24


@pytest.mark.parametrize("calls", [1, 3, 10, 30])
def test_the_slowest_of_a_stage_is_waited_for_as_in_the_simulated_world(calls: int) -> None:
    drawn = [max(delay(0, "reflect", f"{trial}-{call}") for call in range(calls)) for trial in range(400)]
    assert reflect(calls, spread=0.5) == pytest.approx(sum(drawn) / len(drawn), rel=0.1)


def test_medians_are_those_of_the_simulated_world_but_for_rollouts() -> None:
    assert dict(SIMULATED) == {**MEDIANS, "rollout": 0.0}


def test_requests_a_minute_hold_a_stage_up_after_the_first_minute() -> None:
    slow = ModelSettings(concurrency=1000, max_concurrency=1000, rpm=60)
    assert reflect(60, slow) == 24
    assert reflect(600, slow) == 540


def test_tokens_a_minute_hold_it_up_too() -> None:
    slow = ModelSettings(concurrency=1000, max_concurrency=1000, tpm=1000)
    assert reflect(10, slow, tokens=10_000) == 540


def test_a_pace_stretches_every_call() -> None:
    assert stage_seconds(Stage("merge", 1), MODEL, 2.0, 0.0) == 52


def test_rounds_follow_each_other() -> None:
    assert stage_seconds(Stage("merge", 3, rounds=3), MODEL, spread=0.0) == 78


def test_stages_follow_each_other() -> None:
    stages = [Stage("reflect", 30), Stage("curate", 5), Stage("merge", 1)]
    assert batch_seconds(stages, MODEL, spread=0.0) == 24 + 26 + 26


@given(st.floats(0, 5000), st.floats(0, 1.5), st.integers(1, 64), st.integers(1, 512))
def test_more_calls_never_take_less_time_and_spread_never_saves_any(
    calls: float, spread: float, first: int, most: int
) -> None:
    model = ModelSettings(concurrency=first, max_concurrency=most)
    times = [reflect(calls * share, model, spread) for share in (0, 0.5, 1, 2)]
    assert all(earlier <= later * (1 + 1e-9) for earlier, later in pairwise(times))
    assert times[2] >= reflect(calls, model) * (1 - 1e-9)


def test_a_mixture_lies_between_both() -> None:
    assert Stage("curate", 2, 10, 4).mixed(Stage("curate", 4, 20, 8), 0.25) == Stage("curate", 2.5, 12.5, 5)
