"""How much one simulated call writes, and the draws behind it."""

from __future__ import annotations

from collections import Counter
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.errors import UsageError
from combee_core.simulation.draws import Draws
from combee_core.simulation.overload import (
    FINER,
    FORMULA,
    MODELS,
    curve_of,
    entries,
    merged,
    merged_freely,
    merged_half,
)


def test_the_curves_are_those_of_figure_2_as_entries_per_call() -> None:
    assert [entries(m, FORMULA) for m in (1, 5, 10, 20, 50, 100)] == [1.1, 4.0, 4.8, 7.8, 9.4, 8.4]
    assert [entries(m, FINER) for m in (1, 5, 20, 50, 125)] == [1.0, 3.7, 8.8, 7.8, 5.5]


def test_between_two_points_the_curve_is_straight_over_the_logarithm() -> None:
    middle = exp((log(10) + log(20)) / 2)
    assert entries(middle) == pytest.approx((4.8 + 7.8) / 2)
    assert entries(2) == pytest.approx(1.1 + 2.9 * log(2) / log(5))
    assert entries(70) == pytest.approx(9.4 - log(70 / 50) / log(2))


def test_outside_its_points_the_curve_is_constant() -> None:
    assert entries(0.5) == 1.1
    assert entries(10_000) == 8.4
    assert entries(10_000, FINER) == 5.5


@given(st.integers(1, 5_000), st.sampled_from([FORMULA, FINER]))
def test_entries_stay_within_the_points_of_the_curve(m: int, curve: tuple[tuple[int, float], ...]) -> None:
    heights = [height for _, height in curve]
    assert min(heights) <= entries(m, curve) <= max(heights)


def test_a_merge_keeps_nearly_all_of_forty_and_at_most_sixty_of_any_number() -> None:
    assert merged(0) == 0
    assert merged(20) == pytest.approx(19)
    assert merged(40) == pytest.approx(38)
    assert merged(63.2) == pytest.approx(38 + 22 * (1 - exp(-1)))
    assert merged(100_000) == pytest.approx(60)


@given(st.integers(0, 2_000))
def test_a_longer_list_never_makes_a_merge_write_less(u: int) -> None:
    for merger in merged, merged_half, merged_freely:
        assert merger(u) <= merger(u + 1)


def test_the_other_mergers_have_half_the_room_or_any() -> None:
    assert [merged_half(u) for u in (10, 20)] == pytest.approx([9.5, 19])
    assert merged_half(100_000) == pytest.approx(30)
    assert [merged_freely(u) for u in (10, 100_000)] == pytest.approx([9.5, 95_000])


def test_an_unknown_simulated_model_is_refused_with_the_known_ones() -> None:
    assert curve_of("simulated/overload") == FORMULA
    assert curve_of("simulated/overload-finer") == FINER
    with pytest.raises(UsageError, match="simulated/overload, simulated/overload-finer"):
        curve_of("simulated/other")
    assert len(MODELS) == 2


@given(st.integers(), st.text(), st.text())
def test_a_draw_depends_on_its_label_alone(seed: int, stage: str, text: str) -> None:
    draws = Draws(seed, stage, text)
    first = draws.uniform("a")
    draws.uniform("b")
    assert draws.uniform("a") == first == Draws(seed, stage, text).uniform("a")
    assert 0 < first < 1


def test_draws_are_spread_evenly_and_normal_draws_around_zero() -> None:
    draws = [Draws("spread", n) for n in range(4_000)]
    tenths = Counter(int(d.uniform() * 10) for d in draws)
    assert all(320 < tenths[tenth] < 480 for tenth in range(10))
    normals = [d.normal() for d in draws]
    assert sum(normals) / 4_000 == pytest.approx(0, abs=0.06)
    assert sum(value * value for value in normals) / 4_000 == pytest.approx(1, abs=0.1)


def test_a_fraction_is_rounded_up_with_its_own_probability() -> None:
    values = Counter(Draws("round", n).rounded(2.35) for n in range(4_000))
    assert set(values) == {2, 3}
    assert values[3] / 4_000 == pytest.approx(0.35, abs=0.03)
    assert {Draws("round", n).rounded(7.0) for n in range(100)} == {7}


def test_a_whole_number_draw_stays_below_its_bound() -> None:
    assert {Draws("below", n).below(3) for n in range(200)} == {0, 1, 2}


def test_what_occurs_more_often_is_drawn_more_often() -> None:
    weights = {"often": 3, "once": 1}
    first = Counter(next(iter(Draws("weights", n).choose(weights, 1))) for n in range(4_000))
    assert first["often"] / 4_000 == pytest.approx(0.75, abs=0.03)


@given(st.dictionaries(st.text(), st.integers(1, 50)), st.integers(0, 20), st.integers())
def test_nothing_is_drawn_twice_and_order_does_not_matter(weights: dict[str, int], count: int, seed: int) -> None:
    drawn = Draws(seed).choose(weights, count)
    assert len(drawn) == min(count, len(weights))
    assert drawn <= set(weights)
    assert drawn == Draws(seed).choose(dict(reversed(weights.items())), count)
