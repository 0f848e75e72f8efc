"""Calls, tokens, money and time of batches, before they start."""

from __future__ import annotations

from typing import Any

import pytest
from curves import epochs
from hypothesis import given
from hypothesis import strategies as st

from combee_core.call_counts import reduce_calls
from combee_core.calls import Prices
from combee_core.config import STAGES, ModelSettings, RunSettings
from combee_core.estimate import Basis, Count, Estimate, Load, estimate
from combee_core.experience import Experience
from combee_core.fitting import fit

PAPER = RunSettings(grouping="paper", merge="paper", copies=2)
BOUNDED = RunSettings(grouping="bounded", merge="cluster")
FIXED = {"rollout": 100, "reflect": 400, "curate": 500, "merge": 600}
FLAT = Experience(growth=0, entry=100, operation=50, reflection=300, share=1.0, merges=0.1)


def basis(settings: RunSettings = PAPER, experience: Experience = FLAT, **given: Any) -> Basis:
    return Basis(settings=settings, experience=experience, fixed=FIXED, **given)


def night(count: int, size: int = 1000, settings: RunSettings = PAPER, **given: Any) -> Estimate:
    return estimate([Load(traces=(size,) * count)], basis(settings, **given))


def exactly(number: int) -> Count:
    return Count(at_least=number, expected=number, at_most=number)


def at_most(number: int) -> Count:
    return Count(at_least=0, expected=number, at_most=number)


# calls


def test_a_hundred_traces_take_a_hundred_reflect_ten_curate_and_one_merge_call() -> None:
    calls = night(100).calls
    assert calls == {"rollout": exactly(0), "reflect": exactly(100), "curate": at_most(10), "merge": at_most(1)}
    assert calls["reflect"].is_exact
    assert not calls["curate"].is_exact


def test_nothing_takes_nothing() -> None:
    assert estimate([], basis()) == Estimate()
    assert estimate([Load()], basis()) == Estimate(batches=1)


@given(st.lists(st.integers(0, 400), max_size=5), st.sampled_from([PAPER, BOUNDED, RunSettings()]))
def test_where_every_trace_teaches_something_the_groups_are_those_of_the_design(
    sizes: list[int], settings: RunSettings
) -> None:
    found = estimate([Load(traces=(10,) * size) for size in sizes], basis(settings))
    curate, merge = reduce_calls(sizes, settings)
    assert found.calls["reflect"] == exactly(sum(sizes))
    assert found.calls["curate"] == at_most(curate)
    assert found.calls["merge"].at_most == merge


def test_clusters_are_expected_by_experience_and_have_no_bound() -> None:
    assert night(400, settings=BOUNDED).calls["merge"] == Count(at_least=0, expected=40, at_most=None)


def test_what_few_curators_write_auto_merges_in_one_call() -> None:
    few, many = (night(n, settings=RunSettings()).calls["merge"] for n in (9, 40))
    assert few == Count(at_least=0, expected=1, at_most=None)
    assert many.expected == 4


def test_rounds_of_merges_are_counted() -> None:
    deep = RunSettings(grouping="bounded", max_group=5, copies=1, merge="paper", levels=3)
    assert night(200, settings=deep).calls["merge"] == at_most(7)


def test_traces_without_a_lesson_enter_no_group() -> None:
    half = night(100, experience=FLAT.model_copy(update={"share": 0.5}))
    assert half.calls["reflect"] == exactly(100)
    assert half.calls["curate"] == Count(at_least=0, expected=7, at_most=10)


def test_in_sequence_a_share_of_the_batches_has_a_curate_call() -> None:
    settings = PAPER.model_copy(update={"batch_size": 1})
    loads = [Load(traces=(10,))] * 100
    found = estimate(loads, basis(settings, FLAT.model_copy(update={"share": 0.83})))
    assert found.calls["curate"] == Count(at_least=0, expected=83, at_most=100)
    assert found.calls["merge"] == exactly(0)


def test_saved_reflections_are_not_asked_for_and_still_curated() -> None:
    found = estimate([Load(traces=(1000,) * 60, saved=40)], basis())
    assert (found.traces, found.calls["reflect"], found.calls["curate"]) == (100, exactly(60), at_most(10))
    assert found.input_tokens == night(100).input_tokens - 40 * 1400


def test_which_reflections_are_saved_is_spread_over_all() -> None:
    load = Load(traces=(100, 200, 300, 400)).spared(3)
    assert load == Load(traces=(250,), saved=3)
    assert load.size == 4
    assert Load(traces=(100, 200)).spared(0) == Load(traces=(100, 200))


def test_samples_are_solved_and_then_reflected_on() -> None:
    found = estimate([Load(samples=(50,) * 9)], basis())
    assert (found.calls["rollout"], found.calls["reflect"]) == (exactly(9), exactly(9))


# tokens


def test_every_token_of_a_small_night_by_hand() -> None:
    """Three reflections are one group without copies, whose call writes three operations."""
    found = night(3)
    assert found.input_tokens == 3 * (400 + 1000) + (500 + 3 * 100)
    assert found.output_tokens == 3 * 300 + 3 * 50


def test_the_playbook_is_read_by_every_call() -> None:
    bare, full = night(100), night(100, bullets=1000)
    assert full.input_tokens - bare.input_tokens == 1000 * (100 + 10 + 1)


def test_what_a_batch_taught_is_read_by_the_next() -> None:
    growing = FLAT.model_copy(update={"growth": 50})
    first = estimate([Load(traces=(1000,) * 10)], basis(experience=growing))
    second = estimate([Load(traces=(1000,) * 10)] * 2, basis(experience=growing))
    calls = sum(count.expected for count in first.calls.values())
    assert second.input_tokens - 2 * first.input_tokens == pytest.approx(first.bullets * calls, rel=0.01)
    assert second.bullets == pytest.approx(growing.grown(0, 20))


@pytest.mark.parametrize("size", [1, 10])
def test_many_equal_batches_at_once_cost_what_they_cost_one_by_one(size: int) -> None:
    growing = FLAT.model_copy(update={"growth": 80, "share": 0.8})
    one = Load(traces=(500,) * size)
    apart = estimate([one] * 60, basis(experience=growing))
    together = estimate([one.model_copy(update={"times": 10})] * 6, basis(experience=growing))
    assert together.calls == apart.calls
    assert together.batches == apart.batches == 60
    assert together.input_tokens == pytest.approx(apart.input_tokens, rel=0.01)
    assert together.hours == pytest.approx(apart.hours)
    assert together.bullets == pytest.approx(apart.bullets)


# what does not fit into a call


def test_groups_that_are_too_large_for_a_call_are_halved_and_said_so() -> None:
    """Groups of twenty entries of 100 tokens; half of one and the instructions fit into 1,600 tokens."""
    free, tight = night(100, 500), night(100, 500, limit=1_600)
    assert free.split == 0
    assert tight.split == 10
    assert tight.calls["curate"].expected == 20


def test_a_limit_that_fits_splits_nothing() -> None:
    assert night(100, 500, limit=10_000).model_dump() == night(100, 500).model_dump()


def test_traces_that_fit_into_no_call_are_not_asked_about() -> None:
    found = estimate([Load(traces=(100,) * 9 + (9_000,))], basis(limit=2_000))
    assert (found.too_large, found.calls["reflect"]) == (1, exactly(9))


def test_a_playbook_that_fills_the_call_leaves_no_room_for_a_trace() -> None:
    found = night(10, 100, limit=2_000, bullets=1_900)
    assert (found.too_large, found.calls["reflect"]) == (10, exactly(0))


# money


def test_tokens_cost_what_they_cost() -> None:
    found = night(100, prices=Prices(input=2e-6, output=1e-5))
    assert found.cost == pytest.approx(2e-6 * found.input_tokens + 1e-5 * found.output_tokens)


def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    assert night(100).cost is None
    assert night(0).cost == 0


def test_a_price_of_nothing_is_known() -> None:
    assert night(100, prices=Prices(input=0, output=0)).cost == 0


def test_what_the_provider_has_read_before_costs_its_own_price() -> None:
    warm = FLAT.model_copy(update={"cached": 0.5})
    prices = Prices(input=2e-6, output=0, cached=1e-6)
    cold, half = (night(100, experience=experience, prices=prices).cost for experience in (FLAT, warm))
    assert cold is not None
    assert half == pytest.approx(cold * 0.75)


def test_one_unknown_part_makes_the_whole_unknown() -> None:
    known = night(100, prices=Prices(input=1e-6, output=1e-6))
    assert known.plus(night(100)).cost is None
    assert known.plus(known).cost == pytest.approx(2 * (known.cost or 0))


# time


def test_a_batch_waits_for_its_slowest_calls() -> None:
    found = night(30)
    assert found.hours_at_least * 3600 == pytest.approx(24 + 26 + 26)
    assert found.hours > 1.5 * found.hours_at_least


def test_a_measured_curve_gives_the_time_of_a_batch() -> None:
    measured = fit(epochs({5: 400.0, 10: 220.0, 20: 120.0}, 100), 100)
    assert measured is not None
    found = night(10, fit=measured)
    assert found.hours == found.hours_at_least == pytest.approx(22 / 3600, rel=0.05)


def test_a_batch_that_is_partly_done_is_not_on_the_curve() -> None:
    measured = fit(epochs({5: 400.0, 10: 220.0, 20: 120.0}, 100), 100)
    found = estimate([Load(saved=10)], basis(fit=measured))
    assert found.hours_at_least * 3600 == pytest.approx(26 + 26)


def test_the_limits_of_the_provider_hold_a_night_up() -> None:
    slow = PAPER.model_copy(update={"model": ModelSettings(rpm=10)})
    assert night(100, settings=slow).hours > 2 * night(100).hours


# sums


@given(st.integers(0, 50), st.integers(0, 50), st.sampled_from([PAPER, BOUNDED]))
def test_two_estimates_add_up_to_that_of_both(one: int, other: int, settings: RunSettings) -> None:
    parts = [Load(traces=(100,) * size) for size in (one, other)]
    first, second = (estimate([part], basis(settings)) for part in parts)
    both = estimate(parts, basis(settings))
    added = first.plus(second)
    for stage in STAGES:
        assert added.calls[stage].at_most == both.calls[stage].at_most
        assert abs(added.calls[stage].expected - both.calls[stage].expected) <= 1
    assert abs(added.input_tokens - both.input_tokens) <= 1
    assert added.hours == pytest.approx(both.hours)


def test_so_many_nights_are_so_many_times_one() -> None:
    one = night(100, settings=BOUNDED, prices=Prices(input=1e-6, output=1e-6))
    three = one.times(3)
    assert three.calls["reflect"] == exactly(300)
    assert three.calls["merge"] == Count(at_least=0, expected=30, at_most=None)
    assert three.cost == pytest.approx(3 * (one.cost or 0))
    assert night(100).times(3).cost is None
