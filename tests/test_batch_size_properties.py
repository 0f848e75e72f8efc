"""What must hold for any measurements."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from combee_core.batch_size import candidates, decide
from combee_core.config import Peak, SizeSettings
from combee_core.sizes import Observation

PEAKS: list[Peak] = ["fit", "difference"]
SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=6).map(tuple)
SETTINGS = st.builds(
    SizeSettings,
    candidates=SIZES,
    tau=st.floats(0.001, 0.5),
    peak=st.sampled_from(PEAKS),
    cap=st.integers(1, 400),
    fallback=st.integers(1, 400),
    drift=st.just(0.5),
)
DELAYS = st.one_of(st.none(), st.floats(), st.floats(0.01, 1000), st.sampled_from([0.0, -1.0, 5e-324, 1e308]))
ANY = st.builds(Observation, batch_size=st.integers(-1, 300), delay=DELAYS, cold=st.booleans())
# Bounded so that no delay lies near the thousandth of the median at which it would be refused.
SOUND = st.builds(Observation, batch_size=st.integers(1, 300), delay=st.floats(2, 1000), cold=st.booleans())


@given(st.lists(ANY, max_size=15), SETTINGS, st.integers(0, 1000), st.one_of(st.none(), st.integers(-5, 500)))
def test_whatever_was_measured_the_choice_is_a_whole_number_in_range(
    observations: list[Observation], settings: SizeSettings, total: int, token_limit: int | None
) -> None:
    decision = decide(observations, settings, total, token_limit)
    upper = max(1, min(settings.cap, total, settings.cap if token_limit is None else token_limit))
    assert type(decision.batch_size) is int
    assert min(min(settings.candidates), upper) <= decision.batch_size <= upper
    assert decision.reason
    assert decision == type(decision).model_validate_json(decision.model_dump_json())


@given(st.lists(SOUND, max_size=15), SETTINGS, st.sampled_from([1 / 3600, 1 / 60, 60.0, 1000.0]))
def test_the_choice_does_not_hang_on_the_unit_of_time(
    observations: list[Observation], settings: SizeSettings, unit: float
) -> None:
    decision = decide(observations, settings, 500)
    # A plateau in the middle between two sizes may go either way.
    assume(decision.plateau is None or abs(decision.plateau % 1 - 0.5) > 1e-6)
    scaled = [one.model_copy(update={"delay": (one.delay or 0) * unit}) for one in observations]
    other = decide(scaled, settings, 500)
    assert (other.batch_size, other.bound_by) == (decision.batch_size, decision.bound_by)
    assert other.plateau == pytest.approx(decision.plateau)


@given(st.lists(ANY, max_size=15), SETTINGS, st.randoms(use_true_random=False))
def test_the_order_of_observations_does_not_matter(
    observations: list[Observation], settings: SizeSettings, rng: random.Random
) -> None:
    mixed = rng.sample(observations, len(observations))
    assert decide(mixed, settings, 500) == decide(observations, settings, 500)


@given(st.floats(0.02, 1.0), st.floats(0.1, 100), st.integers(1, 20))
def test_on_a_true_power_law_the_choice_is_the_closed_form(alpha: float, first: float, smallest: int) -> None:
    sizes = tuple(smallest * 2**i for i in range(5))
    observations = [Observation(batch_size=size, delay=first * size ** (1 - alpha)) for size in sizes]
    settings = SizeSettings(candidates=sizes, cap=10**6)
    decision = decide(observations, settings, 10**6)
    assert decision.batch_size == pytest.approx(smallest * 62.5 ** (1 / (alpha + 1)), abs=0.51)


@given(SIZES, st.integers(0, 1000))
def test_candidates_are_some_of_those_configured_and_take_half_at_most(sizes: tuple[int, ...], total: int) -> None:
    kept, reason = candidates(SizeSettings(candidates=sizes), total)
    assert list(kept) == sorted(set(kept))
    assert set(kept) <= set(sizes)
    assert sum(kept) <= total / 2
    assert bool(reason) == (total < 30 or set(kept) != set(sizes))
