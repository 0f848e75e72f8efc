"""Which observations count as measurements, and what is said of the others."""

from __future__ import annotations

import math
import random

import pytest
from curves import seen
from hypothesis import given
from hypothesis import strategies as st

from combee_core.fitting import fit
from combee_core.measuring import lost, points_of
from combee_core.sizes import Observation

WARM = {10: 125.0, 20: 156.0, 40: 194.0, 80: 243.0}


@pytest.mark.parametrize(
    ("delay", "said"),
    [(None, "failed"), (math.nan, "nan"), (math.inf, "inf"), (0.0, "cached"), (-2.0, "-2"), (0.001, "cached")],
)
def test_a_delay_that_is_no_measurement_is_left_out_and_named(delay: float | None, said: str) -> None:
    points, (aside,) = points_of(seen({5: 100.0, 10: delay, 20: 156.0, 40: 194.0}))
    assert [point.batch_size for point in points] == [5, 20, 40]
    assert aside.what == "size 10"
    assert said in aside.reason


def test_a_curve_is_fitted_where_three_sizes_remain() -> None:
    found = fit(seen({5: 100.0, 10: math.nan, 20: 156.0, 40: 194.0}), 500)
    assert found
    assert found.alpha == pytest.approx(0.68, abs=0.01)
    assert [aside.what for aside in found.left_out] == ["size 10"]


def test_a_size_below_one_is_no_batch() -> None:
    points, left_out = points_of(seen({0: 10.0, -5: 10.0, 5: 10.0}))
    assert [point.batch_size for point in points] == [5]
    assert [aside.what for aside in left_out] == ["size -5", "size 0"]


def test_a_cold_first_call_does_not_count_beside_a_warm_one_of_its_size() -> None:
    found = fit([*seen({5: 400.0}, 5), *seen({5: 100.0, 10: 125.0})], 500)
    assert found
    assert [point.delay for point in found.points] == [100.0, 125.0]
    assert found.alpha == pytest.approx(0.68, abs=0.01)
    (aside,) = found.left_out
    assert "cold" in aside.reason


def test_a_cold_first_call_does_not_count_where_three_other_sizes_are_warm() -> None:
    found = fit(seen({5: 400.0, **WARM}, 5), 500)
    assert found
    assert found.alpha == pytest.approx(0.68, abs=0.01)
    assert [point.batch_size for point in found.points] == [10, 20, 40, 80]
    assert found.smallest == 5
    (aside,) = found.left_out
    assert aside.what == "size 5"
    assert "cold" in aside.reason


def test_a_cold_first_call_that_nobody_marked_is_an_outlier() -> None:
    found = fit(seen({5: 400.0, **WARM}), 500)
    assert found
    assert found.robust
    assert found.alpha == pytest.approx(0.68, abs=0.01)


def test_a_cold_call_counts_where_too_few_sizes_are_warm_and_its_point_says_so() -> None:
    points, left_out = points_of(seen({5: 130.0, 10: 125.0, 20: 156.0}, 5))
    assert [point.cold for point in points] == [True, False, False]
    assert not left_out


def test_sizes_that_were_all_measured_cold_count_alike() -> None:
    points, left_out = points_of(seen({5: 130.0, **WARM}, 5, *WARM))
    assert len(points) == 5
    assert all(point.cold for point in points)
    assert not left_out


def test_a_failed_warm_call_does_not_push_out_the_cold_one() -> None:
    points, left_out = points_of([*seen({5: 130.0}, 5), *seen({5: None, 10: 150.0})])
    assert [(point.batch_size, point.delay) for point in points] == [(5, 130.0), (10, 150.0)]
    assert [aside.what for aside in left_out] == ["size 5"]


ANY = st.builds(
    Observation,
    batch_size=st.integers(-2, 9),
    delay=st.one_of(st.none(), st.floats(), st.sampled_from([0.0, 1.0, 2.0])),
    cold=st.booleans(),
)


@given(st.lists(ANY, max_size=12), st.randoms(use_true_random=False))
def test_every_observation_is_in_a_point_or_left_out_in_any_order(
    observations: list[Observation], rng: random.Random
) -> None:
    points, left_out = points_of(observations)
    assert sum(point.observations for point in points) + len(left_out) == len(observations)
    assert all(aside.reason for aside in left_out)
    mixed = rng.sample(observations, len(observations))
    assert points_of(mixed) == (points, left_out)


KNOWN = {5: 30.0, 10: 36.0, 20: 43.0}


@pytest.mark.parametrize(
    ("killed", "left", "again"),
    [
        ((), 100, ()),
        ((10,), 100, (10,)),
        ((10,), 10, (10,)),
        ((10,), 9, ()),
        ((20, 5), 100, (5, 20)),
        ((20, 5), 24, (5,)),
        ((5, 10, 20), 100, ()),
    ],
)
def test_sizes_whose_delay_was_lost_are_measured_again_where_traces_are_left(
    killed: tuple[int, ...], left: int, again: tuple[int, ...]
) -> None:
    observations = seen({size: None if size in killed else delay for size, delay in KNOWN.items()})
    assert lost((5, 10, 20), observations, left) == again


def test_a_delay_that_nobody_recorded_is_lost_too() -> None:
    assert lost((5, 10, 20), seen({5: 30.0, 20: 43.0}), 50) == (10,)


def test_nothing_is_measured_again_where_enough_sizes_remain_for_a_fit() -> None:
    assert lost((5, 10, 20, 40), seen({5: 30.0, 10: 36.0, 20: None, 40: 51.0}), 500) == ()


def test_of_two_sizes_both_are_needed() -> None:
    assert lost((5, 10), seen({5: None, 10: 36.0}), 100) == (5,)


def test_a_size_that_was_measured_again_in_vain_is_asked_for_again() -> None:
    observations = [*seen({5: 30.0, 10: None, 20: 43.0}), Observation(batch_size=10, delay=None)]
    assert lost((5, 10, 20, 10), observations, 50) == (10,)
