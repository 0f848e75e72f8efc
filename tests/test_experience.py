"""What is assumed, how a playbook grows, and how both are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.experience import ASSUMED, STAND_IN, Experience, assumed_for, growth_of

TOKENS = st.floats(0, 1e5)
INSIGHTS = st.floats(1, 1e5)


def test_the_stand_in_has_figures_of_its_own() -> None:
    assert assumed_for("simulated/overload") is assumed_for("openai/simulated/overload") is STAND_IN
    assert assumed_for("openai/gpt-4o") is ASSUMED


@given(TOKENS, st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_playbook_grows_by_the_same_in_one_step_or_two(bullets: float, few: float, more: float) -> None:
    twice = ASSUMED.grown(ASSUMED.grown(bullets, few), more)
    assert twice == pytest.approx(ASSUMED.grown(bullets, few + more))
    assert ASSUMED.grown(bullets, few) >= bullets * (1 - 1e-9) - 1e-9


def test_the_first_insight_adds_the_growth_and_later_ones_less() -> None:
    assert ASSUMED.grown(0, 1) == pytest.approx(ASSUMED.growth)
    assert ASSUMED.grown(ASSUMED.grown(0, 99), 1) - ASSUMED.grown(0, 99) < ASSUMED.growth / 2


@given(TOKENS, INSIGHTS, st.floats(1, 500))
def test_growth_is_read_back_from_two_sizes(before: float, insights: float, growth: float) -> None:
    after = Experience(growth=growth).grown(before, insights)
    assert Experience(growth=growth_of(before, after, insights)).grown(before, insights) == pytest.approx(after)


def test_a_playbook_that_shrank_has_no_growth() -> None:
    assert growth_of(500, 400, 10) == 0
    assert Experience(growth=0).grown(400, 1000) == pytest.approx(400)


def test_without_runs_everything_is_assumed_and_only_what_was_asked_for_is_told() -> None:
    (said,) = ASSUMED.said({"share", "trace"})
    assert said == "assumed: 100% of the traces teach something; a trace has 2,000 tokens"


def test_observed_and_assumed_figures_are_told_apart() -> None:
    seen = ASSUMED.model_copy(update={"runs": ("a", "b"), "observed": ("share",), "share": 0.75})
    assert list(seen.said({"share", "cached"})) == [
        "observed in 2 earlier runs: 75% of the traces teach something",
        "assumed: 0% of the input comes from the provider's cache",
    ]


def test_where_everything_was_observed_nothing_is_assumed() -> None:
    seen = ASSUMED.model_copy(update={"runs": ("a",), "observed": ("share", "trace")})
    (said,) = seen.said({"share", "trace"})
    assert said.startswith("observed in 1 earlier run: ")


def test_growth_is_told_as_a_size_that_one_can_picture() -> None:
    (said,) = Experience(growth=80).said({"growth"})
    assert said == "assumed: a playbook of 100 insights has 1,750 tokens"
