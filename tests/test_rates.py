"""So many traces a night in three forms: the paper's own figures, what fits, what is multiplied."""

from __future__ import annotations

import pytest

from combee_core.calls import Prices
from combee_core.config import RunSettings, SizeSettings
from combee_core.estimate import Basis
from combee_core.experience import Experience
from combee_core.rates import FormEstimate, estimate_rate, forms

FIXED = {"rollout": 100, "reflect": 400, "curate": 500, "merge": 600}
PRICES = Prices(input=1e-6, output=4e-6)


def rate(traces: int, days: int = 30, window: float = 24, **settings: object) -> dict[str, FormEstimate]:
    basis = Basis(settings=RunSettings.model_validate(settings), fixed=FIXED, prices=PRICES)
    return {form.name: form for form in estimate_rate(traces, days, window, basis)}


def test_the_papers_hours_for_ten_thousand_traces() -> None:
    """Combee: in sequence about 141 hours, in batches of thirty a little over seven."""
    found = rate(10_000, batch_size=30)
    assert found["sequential"].night.hours_at_least == pytest.approx(141, rel=0.02)
    assert found["paper"].night.hours_at_least == pytest.approx(7.05, rel=0.01)
    assert (found["sequential"].fits, found["paper"].fits) == ("no", "yes")


def test_fifty_thousand_in_the_papers_form_take_more_than_a_day() -> None:
    found = rate(50_000, batch_size=30)
    assert found["paper"].fits == "no"
    assert found["paper"].night.hours_at_least > 24


def test_what_fits_only_if_no_call_is_slow_perhaps_fits() -> None:
    found = rate(10_000, window=10, batch_size=30)
    assert found["paper"].fits == "perhaps"


def test_calls_of_the_papers_form_are_those_of_the_design() -> None:
    night = rate(100, batch_size=100)["paper"].night
    assert [night.calls[stage].expected for stage in ("reflect", "curate", "merge")] == [100, 10, 1]


def test_in_sequence_there_is_a_curate_call_for_each_trace_and_no_merge() -> None:
    night = rate(100)["sequential"].night
    assert (night.batches, night.calls["curate"].expected, night.calls["merge"].is_exact) == (100, 100, True)


@pytest.mark.parametrize("traces", [1, 39, 40, 41, 999, 10_000])
def test_no_trace_is_lost_in_the_cut(traces: int) -> None:
    for form in rate(traces).values():
        assert form.night.traces == traces
        assert form.night.batches == -(-traces // form.batch_size)
        assert form.night.calls["reflect"].expected == traces


def test_batches_are_forty_in_the_papers_form_and_the_cap_in_bounded_groups_unless_given() -> None:
    cap = RunSettings(sizes=SizeSettings(cap=150))
    assert [form.batch_size for form in forms(cap).values()] == [1, 40, 150]
    assert [form.batch_size for form in forms(RunSettings(batch_size=25)).values()] == [1, 25, 25]


def test_what_else_is_set_holds_for_every_form() -> None:
    assert {form.copies for form in forms(RunSettings(copies=3)).values()} == {3}
    assert forms(RunSettings(levels=3))["paper"].levels == 3
    assert forms(RunSettings(levels=3))["bounded"].levels == 2


def test_many_nights_are_many_times_one() -> None:
    found = rate(400, days=7)["paper"]
    assert found.days.cost == pytest.approx(7 * (found.night.cost or 0))
    assert found.days.traces == 2800


def test_larger_traces_cost_more_and_take_no_longer() -> None:
    basis = Basis(fixed=FIXED, prices=PRICES, experience=Experience(trace=1000))
    small, large = (estimate_rate(400, 1, 24, b)[1].night for b in (basis, basis.weighing(5000)))
    assert large.input_tokens - small.input_tokens == 400 * 4000
    assert large.hours == small.hours


def test_a_group_that_outgrows_the_context_is_said_to_be_split() -> None:
    basis = Basis(settings=RunSettings(batch_size=1000), fixed=FIXED, limit=10_000)
    paper = estimate_rate(1000, 1, 24, basis)[1].night
    assert paper.split > 0
    assert paper.calls["curate"].expected == 31 + paper.split


def test_a_form_of_ones_own_is_a_row_of_its_own() -> None:
    mixed = RunSettings(grouping="bounded", merge="paper", max_group=10, copies=1)
    assert [*forms(mixed)] == ["sequential", "paper", "bounded", "as set"]
    assert forms(mixed)["as set"].batch_size == mixed.sizes.fallback
    assert "as set" not in forms(RunSettings(max_group=10, copies=1))
    night = rate(400, batch_size=400, grouping="bounded", merge="paper", max_group=10, copies=1)["as set"].night
    assert [night.calls[stage].expected for stage in ("reflect", "curate", "merge")] == [400, 40, 1]
