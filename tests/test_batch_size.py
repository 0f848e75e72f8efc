"""What the controller decides, by which rule, and what it says."""

from __future__ import annotations

import math

import pytest
from curves import APPWORLD, FORMULA, epochs, law, seen

from combee_core.batch_size import candidates, decide
from combee_core.config import SizeSettings
from combee_core.sizes import Observation

DEFAULT = SizeSettings()


def test_the_minutes_of_appworld_give_ten() -> None:
    decision = decide(epochs(APPWORLD, 90), SizeSettings(candidates=tuple(APPWORLD)), 90)
    assert (decision.batch_size, decision.bound_by) == (10, "plateau")
    assert decision.plateau == pytest.approx(10.48, abs=0.01)
    assert "1.6 % of its steepest slope" in decision.reason
    assert "alpha 0.76" in decision.reason


def test_the_peak_may_be_the_largest_measured_difference() -> None:
    assert decide(epochs(FORMULA), SizeSettings(peak="difference"), 500).batch_size == 81
    assert decide(epochs(FORMULA), DEFAULT, 500).batch_size == 54


@pytest.mark.parametrize(("tau", "chosen"), [(0.008, 81), (0.016, 54), (0.032, 36)])
def test_a_smaller_tau_gives_larger_batches(tau: float, chosen: int) -> None:
    assert decide(epochs(FORMULA), SizeSettings(tau=tau), 500).batch_size == chosen


def test_equal_delays_make_a_larger_batch_pay_fully_and_never_give_zero() -> None:
    decision = decide(law(lambda size: 10.0), DEFAULT, 500)
    assert decision.fit
    assert decision.fit.alpha == pytest.approx(1.0)
    assert (decision.batch_size, decision.bound_by) == (40, "plateau")
    small = decide(law(lambda size: 10.0, (1, 2, 4, 8)), SizeSettings(candidates=(1, 2, 4, 8)), 500)
    assert small.batch_size == 8


def test_equal_epoch_times_give_the_smallest_size() -> None:
    decision = decide(epochs(dict.fromkeys((5, 10, 20, 40), 10.0)), DEFAULT, 500)
    assert (decision.batch_size, decision.bound_by) == (5, "smallest candidate")
    assert decision.plateau is None
    assert "no clear difference" in decision.reason


def test_epochs_that_grow_with_the_size_give_the_smallest_and_say_why() -> None:
    decision = decide(epochs({1: 10.0, 2: 12.0, 4: 15.0, 8: 20.0}), SizeSettings(candidates=(1, 2, 4, 8)), 500)
    assert decision.fit
    assert decision.fit.alpha == pytest.approx(-0.33, abs=0.02)
    assert (decision.batch_size, decision.bound_by) == (1, "smallest candidate")
    assert "no faster" in decision.reason
    assert decision.plateau is None


def test_delays_that_grow_faster_than_the_size_give_the_smallest() -> None:
    assert decide(law(lambda size: 0.1 * size**1.4), DEFAULT, 500).batch_size == 5


def test_delays_that_grow_slower_than_the_size_still_pay() -> None:
    decision = decide(seen({1: 10.0, 2: 12.0, 4: 15.0, 8: 20.0}), SizeSettings(candidates=(1, 2, 4, 8)), 500)
    assert (decision.batch_size, decision.bound_by) == (12, "plateau")
    assert "beyond the 8 measured" in decision.reason


@pytest.mark.parametrize("observations", [[], seen({8: 33.0}), seen({8: None}), seen({8: math.nan})])
def test_the_only_candidate_is_used_and_nothing_is_fitted(observations: list[Observation]) -> None:
    decision = decide(observations, SizeSettings(candidates=(8,)), 500)
    assert (decision.batch_size, decision.bound_by, decision.fit) == (8, "only size", None)
    assert "nothing is fitted" in decision.reason


def test_the_only_size_that_could_be_measured_is_used() -> None:
    decision = decide(seen({5: None, 10: math.inf, 20: 30.0}), DEFAULT, 500)
    assert (decision.batch_size, decision.bound_by) == (20, "only size")
    assert "2 of 3 measurements left out" in decision.reason
    assert [aside.what for aside in decision.left_out] == ["size 5", "size 10"]


@pytest.mark.parametrize(
    "observations", [[], seen({5: 0.0, 10: None, 20: math.nan}), seen({5: 10.0, 10: 12.0, 20: None})]
)
def test_without_enough_measurements_the_fallback_is_taken(observations: list[Observation]) -> None:
    decision = decide(observations, DEFAULT, 500)
    assert (decision.batch_size, decision.bound_by, decision.fit) == (40, "fallback", None)
    assert "fallback of 40" in decision.reason


def test_points_and_what_was_left_out_are_known_without_a_curve_too() -> None:
    decision = decide(seen({5: 10.0, 10: 12.0, 20: None}), DEFAULT, 500)
    assert [point.batch_size for point in decision.points] == [5, 10]
    assert [aside.what for aside in decision.left_out] == ["size 20"]


def test_a_timed_out_size_is_left_out_and_the_rest_is_fitted() -> None:
    decision = decide(seen({5: 30.0, 10: None, 20: 45.0, 40: 60.0, 80: 80.0}), DEFAULT, 500)
    assert decision.fit
    assert decision.bound_by == "plateau"
    assert "1 of 5 measurements left out" in decision.reason


def test_a_cold_first_call_changes_nothing() -> None:
    warm = law(lambda size: 100 * (size / 5) ** 0.32)
    cold = [Observation(batch_size=5, delay=400.0, cold=True), *warm[1:]]
    assert decide(cold, DEFAULT, 500).batch_size == decide(warm, DEFAULT, 500).batch_size == 59
    assert "measured cold" not in decide(cold, DEFAULT, 500).reason


def test_a_cold_call_that_had_to_count_is_said() -> None:
    decision = decide(seen({5: 30.0, 10: 36.0, 20: 45.0}, 5), DEFAULT, 500)
    assert "one size measured cold only" in decision.reason


def test_an_outlier_is_said() -> None:
    decision = decide(seen({5: 30.0, 10: 36.0, 20: 4500.0, 40: 55.0, 80: 70.0}), DEFAULT, 500)
    assert "one size lies far off the curve" in decision.reason


def test_sizes_within_the_noise_of_each_other_are_no_clear_difference() -> None:
    noisy = [(20, 100.0), (20, 107.5), (20, 92.5), (40, 97.0), (40, 104.0), (40, 90.0)]
    observations = [Observation(batch_size=size, delay=time * size / 500) for size, time in noisy]
    decision = decide(observations, SizeSettings(candidates=(20, 40)), 500)
    assert (decision.batch_size, decision.bound_by) == (20, "smallest candidate")
    assert "no clear difference" in decision.reason
    assert "3.0 %" in decision.reason
    assert "15.0 %" in decision.reason


def test_points_that_scatter_more_than_the_curve_falls_are_no_clear_difference() -> None:
    decision = decide(epochs({5: 100.0, 10: 70.0, 20: 130.0, 40: 80.0, 80: 95.0}), DEFAULT, 500)
    assert decision.batch_size == 5
    assert "no clear difference" in decision.reason


def test_wide_repeats_do_not_hide_a_curve_that_falls_far() -> None:
    repeats = [
        Observation(batch_size=size, delay=20 * size**0.36 * f) for size in (5, 10, 20, 40, 80) for f in (0.7, 1, 1.5)
    ]
    assert decide(repeats, DEFAULT, 500).bound_by == "plateau"


@pytest.mark.parametrize(
    ("settings", "total", "token_limit", "chosen", "rule"),
    [
        (SizeSettings(cap=50), 500, None, 50, "cap"),
        (DEFAULT, 45, None, 45, "training size"),
        (DEFAULT, 500, 30, 30, "token limit"),
        (SizeSettings(cap=50), 45, 30, 30, "token limit"),
        (SizeSettings(cap=20), 45, 30, 20, "cap"),
        (DEFAULT, 500, 100, 54, "plateau"),
        (DEFAULT, 54, 54, 54, "plateau"),
        (DEFAULT, 3, None, 3, "training size"),
        (DEFAULT, 500, 2, 2, "token limit"),
        (DEFAULT, 500, 0, 1, "token limit"),
        (DEFAULT, 0, None, 1, "training size"),
        (SizeSettings(candidates=(60, 70)), 500, None, 60, "smallest candidate"),
        (SizeSettings(candidates=(60, 70), cap=58), 500, None, 58, "cap"),
    ],
)
def test_the_choice_is_bound_by_the_rule_that_it_names(
    settings: SizeSettings, total: int, token_limit: int | None, chosen: int, rule: str
) -> None:
    decision = decide(epochs(FORMULA), settings, total, token_limit)
    assert (decision.batch_size, decision.bound_by) == (chosen, rule)
    assert rule == "plateau" or rule in decision.reason
    assert decision.plateau == pytest.approx(54.2, abs=0.1)


def test_the_fallback_obeys_the_limits_too() -> None:
    assert decide([], DEFAULT, 12).batch_size == 12
    assert decide([], SizeSettings(cap=30), 500).batch_size == 30
    assert decide([], SizeSettings(fallback=2), 500).batch_size == 5


def test_a_decision_survives_being_written_down() -> None:
    decision = decide([*epochs(FORMULA), *seen({7: None})], DEFAULT, 500)
    assert decision == type(decision).model_validate_json(decision.model_dump_json())


# candidates


def test_all_candidates_are_measured_where_they_take_half_at_most() -> None:
    assert candidates(DEFAULT, 310) == ((5, 10, 20, 40, 80), "")


@pytest.mark.parametrize(
    ("total", "kept"),
    [
        (309, (5, 10, 20, 40)),
        (150, (5, 10, 20, 40)),
        (149, (5, 10, 20)),
        (70, (5, 10, 20)),
        (69, (5, 10)),
        (30, (5, 10)),
    ],
)
def test_the_largest_are_left_out_until_the_rest_take_half_at_most(total: int, kept: tuple[int, ...]) -> None:
    sizes, reason = candidates(DEFAULT, total)
    assert sizes == kept
    assert f"half of {total}" in reason
    assert all(str(size) in reason for size in set(DEFAULT.candidates) - set(kept))


@pytest.mark.parametrize("total", [0, 1, 20, 29])
def test_below_thirty_nothing_is_measured(total: int) -> None:
    sizes, reason = candidates(SizeSettings(candidates=(1, 2, 4)), total)
    assert sizes == ()
    assert f"{total} are too few" in reason


def test_candidates_larger_than_the_input_are_dropped_once_and_nothing_fills_up() -> None:
    sizes, reason = candidates(SizeSettings(candidates=(100, 10, 50, 20, 100, 80)), 60)
    assert sizes == (10, 20)
    assert "50, 80, 100" in reason


def test_candidates_are_sorted_and_measured_once() -> None:
    assert candidates(SizeSettings(candidates=(20, 5, 10, 5, 20)), 500) == ((5, 10, 20), "")


def test_candidates_that_all_take_more_than_half_leave_none() -> None:
    sizes, reason = candidates(SizeSettings(candidates=(40, 80)), 60)
    assert sizes == ()
    assert "40, 80" in reason


def test_one_candidate_alone_is_one_candidate() -> None:
    assert candidates(SizeSettings(candidates=(8,)), 100) == ((8,), "")


def test_a_candidate_below_one_is_left_out() -> None:
    sizes, reason = candidates(SizeSettings(candidates=(-3, 0, 5, 10)), 100)
    assert sizes == (5, 10)
    assert "-3, 0" in reason
