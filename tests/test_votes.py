"""Bullet tags become votes: each trace once, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from builders import numbered, reflection, vote
from hypothesis import given
from hypothesis import strategies as st
from strategies import reflections, votes_on

from combee_core.learners.ace.apply import apply
from combee_core.types import BulletTag, Reflection, Update, Vote
from combee_core.votes import votes

IDS = ("calc-00001", "calc-00002")
BOOK = numbered("a", "b")


def counters(cast: Sequence[Vote]) -> list[tuple[int, int]]:
    after = apply(BOOK, Update(votes=tuple(cast)), 1).state
    return [(b.helpful, b.harmful) for b in after.bullets]


def test_a_trace_counts_once_for_any_number_of_copies() -> None:
    once = reflection("t1", calc_00001="helpful")
    for copies in 1, 2, 3, 7:
        assert votes([once] * copies) == (vote("calc-00001"),)
        assert counters(votes([once] * copies)) == [(1, 0), (0, 0)]


def test_different_traces_count_each() -> None:
    cast = votes(reflection(f"t{n}", calc_00001="helpful" if n % 3 else "harmful") for n in range(9))
    assert counters(cast) == [(6, 3), (0, 0)]


def test_neutral_tags_are_no_votes() -> None:
    assert votes([reflection(calc_00001="neutral")]) == ()


def test_a_reflection_without_insight_votes_too() -> None:
    assert votes([reflection("t1", insight="", calc_00002="helpful")]) == (vote("calc-00002"),)


def test_of_two_verdicts_of_one_trace_the_harmful_one_counts_in_either_order() -> None:
    both = [BulletTag(bullet_id="calc-00001", tag=tag) for tag in ("helpful", "harmful", "neutral", "helpful")]
    for tags in both, both[::-1]:
        assert votes([Reflection(trace_id="t1", tags=tuple(tags))]) == (vote("calc-00001", tag="harmful"),)


@given(st.data(), st.lists(reflections(IDS), max_size=8))
def test_any_order_and_any_copies_of_the_reflections_give_the_same_counters(
    data: st.DataObject, given_reflections: list[Reflection]
) -> None:
    mixed = data.draw(st.permutations(given_reflections * 2))
    assert votes(mixed) == votes(given_reflections)
    assert counters(votes(mixed)) == counters(votes(given_reflections))


@given(st.data(), votes_on(IDS))
def test_any_order_of_the_votes_gives_the_same_playbook(data: st.DataObject, cast: list[Vote]) -> None:
    mixed = data.draw(st.permutations(cast))
    assert apply(BOOK, Update(votes=tuple(mixed)), 1) == apply(BOOK, Update(votes=tuple(cast)), 1)


@given(votes_on(IDS))
def test_counters_add_up_to_the_traces_that_judged_the_bullet(cast: list[Vote]) -> None:
    judges = [{one.trace_id for one in cast if one.bullet_id == bullet_id} for bullet_id in IDS]
    assert [helpful + harmful for helpful, harmful in counters(cast)] == [len(its) for its in judges]
