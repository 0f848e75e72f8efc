"""The curve through measured delays: the paper's numbers, outliers, and what numpy and scipy say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from curves import APPWORLD, FINER, FORMULA, epochs, fitted, law, seen
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import siegelslopes

from combee_core.fitting import (
    curve,
    drift,
    epoch_seconds,
    epoch_time,
    expected_delay,
    fit,
    gain,
    peak_slope,
    plateau,
    slope_at,
)
from combee_core.sizes import Observation

TAU = 0.016


def test_the_minutes_of_appworld_give_the_papers_curve_and_plateau() -> None:
    found = fitted(APPWORLD)
    assert found.amplitude == pytest.approx(94.88, abs=0.01)
    assert found.alpha == pytest.approx(0.760, abs=0.001)
    assert found.smallest == 1
    assert plateau(found, TAU, "fit") == pytest.approx(10.48, abs=0.01)


def test_without_batches_of_one_the_minutes_of_appworld_give_another_curve() -> None:
    found = fitted({size: time for size, time in APPWORLD.items() if size > 1})
    assert found.amplitude == pytest.approx(129.6, abs=0.1)
    assert found.alpha == pytest.approx(0.868, abs=0.001)
    assert plateau(found, TAU, "fit") == pytest.approx(45.7, abs=0.1)


@pytest.mark.parametrize(
    ("times", "amplitude", "alpha", "by_fit", "by_difference"),
    [(FORMULA, 9684, 0.7355, 54.2, 80.8), (FINER, 7081, 0.6437, 61.9, 69.9)],
    ids=["Formula", "FiNER"],
)
def test_the_figures_of_gepa_give_the_papers_curves(
    times: dict[int, float], amplitude: float, alpha: float, by_fit: float, by_difference: float
) -> None:
    found = fitted(times)
    assert found.amplitude == pytest.approx(amplitude, abs=1)
    assert found.alpha == pytest.approx(alpha, abs=0.0001)
    assert not found.robust
    assert plateau(found, TAU, "fit") == pytest.approx(by_fit, abs=0.1)
    assert plateau(found, TAU, "difference") == pytest.approx(by_difference, abs=0.1)


@pytest.mark.parametrize(("times", "chosen"), [(FORMULA, 84), (FINER, 94)], ids=["Formula", "FiNER"])
def test_with_a_smallest_size_of_eight_the_plateau_lies_by_the_papers_choice(
    times: dict[int, float], chosen: int
) -> None:
    found = fitted(times).model_copy(update={"smallest": 8})
    assert plateau(found, TAU, "fit") == pytest.approx(chosen, rel=0.06)


@pytest.mark.parametrize(
    ("alpha", "factor"), [(0.25, 27.33), (0.5, 15.75), (0.75, 10.62), (0.9, 8.815), (1.0, 7.906), (1.1, 7.164)]
)
@pytest.mark.parametrize("smallest", [1, 5, 8])
def test_the_plateau_off_the_curve_has_a_closed_form_without_the_amplitude(
    alpha: float, factor: float, smallest: int
) -> None:
    for amplitude in 0.3, 7000.0:
        found = fitted({size: amplitude * size**-alpha for size in (smallest, 2 * smallest, 4 * smallest)})
        assert plateau(found, TAU, "fit") == pytest.approx(smallest * factor, rel=0.001)


def test_at_the_plateau_the_slope_has_fallen_to_tau_of_its_peak() -> None:
    found = fitted(FORMULA)
    for tau in 0.008, 0.016, 0.032:
        place = plateau(found, tau, "fit")
        assert place
        assert slope_at(found, place) == pytest.approx(tau * slope_at(found, 5))
        place = plateau(found, tau, "difference")
        assert place
        assert slope_at(found, place) == pytest.approx(tau * (2981 - 1892) / 5)


def test_a_curve_that_does_not_fall_has_no_plateau() -> None:
    rising = fitted({5: 10.0, 10: 11.0, 20: 13.0})
    assert rising.alpha < 0
    assert plateau(rising, TAU, "fit") is None
    assert plateau(rising, TAU, "difference") is None


def test_where_no_measured_difference_falls_the_curves_slope_is_the_peak() -> None:
    rising = fitted({5: 10.0, 10: 11.0, 20: 13.0})
    assert peak_slope(rising, "difference") == slope_at(rising, 5)


@given(st.lists(st.floats(1, 5), min_size=3, max_size=9))
def test_least_squares_and_r_squared_agree_with_numpy(delays: list[float]) -> None:
    found = fit([Observation(batch_size=2**i, delay=delay) for i, delay in enumerate(delays)], 100)
    assert found
    if found.robust:
        return
    x = np.log([2.0**i for i in range(len(delays))])
    y = np.log([delay * 100 / 2**i for i, delay in enumerate(delays)])
    slope, intercept = np.polyfit(x, y, 1)
    assert found.alpha == pytest.approx(-slope, abs=1e-9)
    assert math.log(found.amplitude) == pytest.approx(intercept, abs=1e-9)
    assert found.r_squared == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2, abs=1e-6)


@given(st.lists(st.floats(0.8, 1.25), min_size=5, max_size=9), st.integers(0, 4), st.floats(50, 200))
def test_the_robust_line_is_scipys_repeated_median(delays: list[float], place: int, factor: float) -> None:
    delays[place] *= factor
    found = fit([Observation(batch_size=2**i, delay=delay) for i, delay in enumerate(delays)], 100)
    assert found
    assert found.robust
    y = np.log([delay * 100 / 2**i for i, delay in enumerate(delays)])
    slope, intercept = siegelslopes(y, np.log([2.0**i for i in range(len(delays))]))
    assert found.alpha == pytest.approx(-slope, abs=1e-9)
    assert math.log(found.amplitude) == pytest.approx(intercept, abs=1e-9)


@pytest.mark.parametrize("place", [5, 10, 20, 40, 80])
@pytest.mark.parametrize("factor", [0.01, 0.25, 4.0, 50.0])
def test_one_outlier_of_five_does_not_bend_the_curve(place: int, factor: float) -> None:
    delays = {size: 100 * (size / 5) ** 0.32 for size in (5, 10, 20, 40, 80)}
    found = fit(seen({**delays, place: delays[place] * factor}), 500)
    assert found
    assert found.robust
    assert found.alpha == pytest.approx(0.68)
    assert epoch_seconds(found, 20) == pytest.approx(delays[20] * 25)


@pytest.mark.parametrize(
    "bend", [lambda n: 40 + 0.8 * n, lambda n: 24 + 1.2 * n, lambda n: 60.0, lambda n: 20 * n**0.5]
)
def test_a_curve_that_bends_a_little_has_no_outlier(bend: object) -> None:
    assert callable(bend)
    for sizes in ((5, 10, 20, 40, 80), (5, 20, 40, 80), (5, 10, 20)):
        found = fit(law(bend, sizes), 500)
        assert found
        assert not found.robust


def test_a_size_is_fitted_with_the_median_of_its_repeats() -> None:
    repeats = [Observation(batch_size=5, delay=delay) for delay in (9.0, 10.0, 70.0)]
    found = fit([*repeats, *seen({10: 15.0, 20: 22.0})], 100)
    assert found
    (point, *_) = found.points
    assert (point.delay, point.observations) == (10.0, 3)
    assert point.spread == pytest.approx(6.1)
    assert found.noise == pytest.approx(6.1)
    assert epoch_time(100, point) == 200.0


def test_two_sizes_are_fitted_only_where_no_more_were_tried() -> None:
    two = fit(seen({5: 10.0, 10: 12.0}), 100)
    assert two
    assert two.r_squared == pytest.approx(1.0)
    assert two.noise == pytest.approx(0.0)
    assert fit(seen({5: 10.0, 10: 12.0, 20: None}), 100) is None
    assert fit(seen({5: 10.0, 10: 12.0, 20: None, 40: 19.0}), 100)


def test_one_size_or_none_gives_no_curve() -> None:
    assert fit([], 100) is None
    assert fit(seen({8: 10.0}), 100) is None
    assert fit(seen({8: math.nan, 16: 0.0}), 100) is None


def test_the_curve_gives_epochs_and_delays_of_one_iteration() -> None:
    found = fit(law(lambda size: 20 * size**0.36), 500)
    assert found
    assert found.total == 500
    for size in 5, 33, 80:
        assert expected_delay(found, size) == pytest.approx(20 * size**0.36)
        assert epoch_seconds(found, size) == pytest.approx(20 * size**0.36 * 500 / size)
    assert curve(found, [5, 33]) == (epoch_seconds(found, 5), epoch_seconds(found, 33))
    assert math.exp(gain(found)) == pytest.approx(epoch_seconds(found, 5) / epoch_seconds(found, 80))


def test_drift_is_the_share_by_which_an_iteration_left_the_curve() -> None:
    found = fit(law(lambda size: 20 * size**0.36), 500)
    assert found
    expected = expected_delay(found, 30)
    assert drift(found, Observation(batch_size=30, delay=1.6 * expected)) == pytest.approx(0.6)
    assert drift(found, Observation(batch_size=30, delay=0.7 * expected)) == pytest.approx(-0.3)


@pytest.mark.parametrize("delay", [None, math.nan, math.inf, 0.0, -3.0])
def test_an_iteration_without_a_usable_delay_tells_nothing_of_drift(delay: float | None) -> None:
    assert drift(fitted(FORMULA), Observation(batch_size=30, delay=delay)) == 0.0


def test_a_cold_iteration_tells_nothing_of_drift() -> None:
    assert drift(fitted(FORMULA), Observation(batch_size=30, delay=1e6, cold=True)) == 0.0
    assert drift(fitted(FORMULA), Observation(batch_size=0, delay=10.0)) == 0.0


def test_the_number_of_traces_does_not_change_the_curve_through_the_same_epochs() -> None:
    of_many, of_one = fit(epochs(FORMULA, 500), 500), fitted(FORMULA)
    assert of_many
    assert of_many.amplitude == pytest.approx(of_one.amplitude)
    assert of_many.alpha == pytest.approx(of_one.alpha)


def test_times_that_are_all_equal_are_fitted_perfectly_by_a_flat_line() -> None:
    flat = fitted({5: 7.0, 10: 7.0, 20: 7.0})
    assert flat.alpha == pytest.approx(0.0, abs=1e-12)
    assert flat.r_squared == pytest.approx(1.0)


def test_two_sizes_close_together_give_no_power_beyond_reason() -> None:
    for found in (fit(seen({231: 4.0, 232: 2.0}), 500), fit(seen({231: 2.0, 232: 4.0}), 500)):
        assert found
        assert abs(found.alpha) == 20.0
        assert epoch_seconds(found, 231.5) == pytest.approx(2.83 * 500 / 231.5, rel=0.01)


@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(5e-324, 1.7e308)), max_size=6), st.integers(-5, 10**9))
def test_no_delay_overflows(pairs: list[tuple[int, float]], total: int) -> None:
    found = fit([Observation(batch_size=size, delay=delay) for size, delay in pairs], total)
    if found:
        assert all(map(math.isfinite, (found.amplitude, found.alpha, found.r_squared, found.noise)))
        assert found == type(found).model_validate_json(found.model_dump_json())
        assert math.isfinite(epoch_seconds(found, 7))
        place = plateau(found, TAU, "difference")
        assert place is None or place > 0
