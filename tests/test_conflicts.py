"""Contradictions that code can see, and what only looks like one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.conflicts import claim, contradiction, contradictions, difference, skeleton
from combee_core.simulation.platitudes import platitude
from combee_core.simulation.specifics import WAYS
from combee_core.simulation.world import World

RULES = list(World(5, 60).specifics)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("Set page_limit to 20.", "Set page_limit to 50.", "they differ in values: 20 and 50"),
        (
            "Give the ratio in percent: 20, not 0.2.",
            "Give the ratio as a decimal: 0.2, not 20.",
            "they differ in values: 20 and 0.2",
        ),
        ("Write the ratio as percent.", "Write the ratio as decimal.", "opposed words: percent and decimal"),
        ("Round before the last step.", "Round after the last step.", "opposed words: before and after"),
        ("Always round the sum.", "Never round the sum.", "opposed words: always and never"),
        ("Round the sum to cents.", "Do not round the sum to cents.", "one of them is negated"),
        ("Count 360 days a year.", "Count the days a year, not 360.", "one says 360, the other denies it"),
        ("Round to 2 decimals before the last step.", "Never round before the last step.", "one of them is negated"),
    ],
)
def test_what_cannot_both_be_right_is_named_with_the_reason(a: str, b: str, reason: str) -> None:
    assert contradiction(a, b) == reason
    assert contradiction(b, a) != ""
    assert difference(a, b) == reason


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Set page_limit to 20.", "Set page_limit to 20 and sort by date."),
        ("Count 360 days a year, not 365.", "Count 360 days instead of 365."),
        ("Count 360 days a year, not 365.", "The year has 360 days."),
        ("The fee is 5.", "The fee is 5.0."),
        ("The limit is 1,000.", "The limit is 1000."),
        ("Cancel the order before you refund it.", "Before you refund the order, cancel it."),
        ("Answer in percent.", "Answer in percent."),
    ],
)
def test_a_detail_more_or_other_words_are_no_contradiction(a: str, b: str) -> None:
    assert contradiction(a, b) == contradiction(b, a) == ""


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Use show_song() for like_count: 20.", "Use show_song() for play_count: 30."),
        ("In Ghent the desk adds 5.", "In Lagos the desk adds 7."),
        ("Take the newest song, up to 5.", "Take the oldest song, up to 9."),
    ],
)
def test_what_names_other_things_is_no_contradiction_and_yet_a_difference(a: str, b: str) -> None:
    assert contradiction(a, b) == ""
    assert difference(a, b).startswith("they name different things: ")


def test_long_advice_with_a_different_word_somewhere_is_not_called_a_contradiction() -> None:
    a = "Always read the library response first and use the fields that it already has, for every song."
    b = "Never call the song endpoint in a loop where another response holds what you need."
    assert contradiction(a, b) == ""


def test_three_wordings_of_a_rule_agree() -> None:
    for rule in RULES:
        for one, other in combinations(range(WAYS), 2):
            assert difference(rule.wording(one), rule.wording(other)) == ""


def test_a_rule_with_another_number_contradicts_it_in_every_wording() -> None:
    for rule in RULES:
        other = replace(rule, number="777")
        for one, way in product(range(WAYS), repeat=2):
            assert contradiction(rule.wording(one), other.wording(way)).startswith("they differ in values")


def test_rules_on_different_topics_do_not_contradict_each_other() -> None:
    told = [contradiction(a.wording(0), b.wording(0)) for a, b in combinations(RULES, 2)]
    assert not any(told)


def test_platitudes_do_not_contradict_rules_or_each_other() -> None:
    general = [platitude(rule.wording(0)) for rule in RULES[:20]]
    assert not any(contradiction(a, b) for a, b in combinations([*general, *(r.wording(1) for r in RULES[:20])], 2))


def test_texts_that_contradict_each_other_are_listed_once_with_those_that_agree_left_out() -> None:
    texts = ["The fee is 5.", "The fee is 5", "The fee is 7.", "The fee is 9.", "The fee is due in May."]
    assert list(contradictions(texts)) == [((0, 2, 3), "they differ in values: 5 and 7")]
    assert list(contradictions(texts[:2])) == list(contradictions([])) == []


def test_two_contradictions_are_two() -> None:
    texts = ["The fee is 5.", "The fee is 7.", "Round the sum up.", "Round the sum down."]
    assert [at for at, _ in contradictions(texts)] == [(0, 1), (2, 3)]


def test_a_claim_is_read_off_the_text() -> None:
    read = claim("For ROE answer 20, not 0.2; never use page_limit.")
    assert (read.asserted, read.denied) == ({"20"}, {"0.2"})
    assert read.names == {"ROE", "page_limit"}
    assert "never" in read.telling
    assert {"answer", "use"} <= read.words


def test_a_skeleton_is_what_is_left_without_values_and_telling_words() -> None:
    assert skeleton("Write the ratio as percent: 20, not 0.2.") == "write the ratio as"
    assert skeleton("Write the ratio as decimal, 0.2 instead of 20.") == "write the ratio as"
    assert skeleton("Always round page_limit up.") == skeleton("Never round page_limit down.") == "round page_limit"
    assert skeleton("Set page_limit.") != skeleton("Set page_size.")
    assert skeleton("5") == ""


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared_both_ways(a: str, b: str) -> None:
    assert bool(contradiction(a, b)) == bool(contradiction(b, a))
    assert contradiction(a, a) == ""
