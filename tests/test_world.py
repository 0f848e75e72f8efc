"""The hidden rules, their wordings, questions and days of traces."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combee_core.errors import UsageError
from combee_core.similarity import SAME, similarity
from combee_core.simulation.day import day, day_jsonl
from combee_core.simulation.specifics import KINDS, WAYS, Specific, Terms, puzzle_in, stated_in
from combee_core.simulation.vocabulary import CAPACITY, PLACES, topic
from combee_core.simulation.world import World
from combee_core.types import Sample

WORLD = World(7)
ABOUT = "callable cocoa notes booked in Lisbon for royal clients"


def test_a_world_has_as_many_different_rules_as_are_asked_for() -> None:
    for rules in (1, 120, 10_000):
        topics = {rule.topic for rule in World(3, rules).specifics}
        assert len(topics) == rules


def test_a_world_larger_than_its_vocabulary_or_without_rules_is_refused() -> None:
    assert CAPACITY > 10_000_000
    for rules in (0, -1, CAPACITY + 1):
        with pytest.raises(UsageError, match="between 1 and"):
            World(0, rules)


def test_the_vocabulary_has_no_word_twice_and_names_every_topic_once() -> None:
    for place in PLACES:
        assert len(set(place)) == len(place)
    some = random.Random(0).sample(range(CAPACITY), 5_000)
    assert len({topic(position) for position in some}) == 5_000


def test_worlds_of_different_seeds_have_different_rules() -> None:
    assert not set(World(1).specifics) & set(World(2).specifics)
    assert list(World(1).specifics) == list(World(1).specifics)


def test_every_rule_is_recognised_in_each_of_its_three_wordings_and_in_a_longer_text() -> None:
    for rule in World(5, 400).specifics:
        wordings = [rule.wording(way) for way in range(WAYS)]
        assert len(set(wordings)) == WAYS == 3
        for words in wordings:
            (stated,) = stated_in(words)
            assert (stated.specific, stated.words) == (rule, words)
            inside = f"Mind the formats. {words} Answer with two decimals, e.g. 3.50."
            assert [one.specific for one in stated_in(inside)] == [rule]
            assert [one.specific for one in stated_in(f"note: {words.lower()}")] == [rule]


def test_a_text_may_state_several_rules_in_their_order() -> None:
    first, second = WORLD.rule(0), WORLD.rule(1)
    text = f"{second.wording(1)} {first.wording(2)}"
    assert [one.specific for one in stated_in(text)] == [second, first]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "For the notes, multiply the charge by 1.35.",
        f"Look at {ABOUT} with care.",
        f"For {ABOUT}, multiply the charge.",
        f"What is the charge on {ABOUT} for an amount of 10 over 3 days?",
    ],
)
def test_a_text_without_topic_and_number_states_no_rule(text: str) -> None:
    assert stated_in(text) == ()


def test_a_number_is_the_same_however_many_zeros_it_ends_in() -> None:
    (stated,) = stated_in(f"For {ABOUT}, multiply the charge by 1.50.")
    assert stated.specific == Specific(ABOUT, "factor", "1.5")
    (stated,) = stated_in(f"For {ABOUT}, round the charge up to the next 100.")
    assert stated.specific == Specific(ABOUT, "step", "100")


@pytest.mark.parametrize(
    ("kind", "number", "right"),
    [
        ("factor", "1.5", "150.00"),
        ("year", "300", "121.67"),
        ("fee", "2.5", "102.50"),
        ("step", "30", "120.00"),
    ],
)
def test_each_kind_of_rule_changes_the_plain_charge_in_its_own_way(kind: str, number: str, right: str) -> None:
    terms = Terms(Decimal(3_650), 10)
    assert terms.charge() == 100
    assert Specific(ABOUT, kind, number).answer(terms) == right


def test_all_kinds_occur_in_a_world() -> None:
    assert {rule.kind for rule in WORLD.specifics} == set(KINDS)


def test_fewer_than_one_pair_of_different_rules_in_a_hundred_is_alike() -> None:
    chance = random.Random(1)
    for rules in (120, 10_000):
        known = list(World(rules, rules).specifics)
        pairs = [chance.sample(known, 2) for _ in range(4_000)]
        values = [similarity(a.wording(chance.randrange(3)), b.wording(chance.randrange(3))) for a, b in pairs]
        assert sum(value >= SAME for value in values) / len(values) < 0.01


def test_even_the_same_wording_of_two_rules_of_one_kind_is_rarely_alike() -> None:
    for kind in KINDS:
        known = [rule.wording(0) for rule in World(11, 400).specifics if rule.kind == kind]
        values = [similarity(a, b) for a, b in combinations(known, 2)]
        assert sum(value >= SAME for value in values) / len(values) < 0.01


def test_wordings_of_one_rule_are_alike() -> None:
    pairs = list(combinations(range(WAYS), 2))
    values = [similarity(r.wording(a), r.wording(b)) for r in World(2, 200).specifics for a, b in pairs]
    assert sum(value >= SAME for value in values) / len(values) > 0.95


def test_samples_are_the_same_for_the_same_seed_and_a_shorter_list_is_their_beginning() -> None:
    many = WORLD.sample(50, seed=4, prefix="train")
    assert WORLD.sample(20, seed=4, prefix="train") == many[:20]
    assert WORLD.sample(50, seed=5, prefix="train") != many
    assert [sample.id for sample in many[:2]] == ["train-00001", "train-00002"]


def test_every_sample_needs_one_rule_and_the_plain_charge_is_always_wrong() -> None:
    rules = set(WORLD.specifics)
    for sample in WORLD.sample(500, seed=1):
        puzzle, rule = puzzle_in(sample.context), WORLD.rule_of(sample.context)
        assert puzzle is not None
        assert rule in rules
        assert sample.target == rule.answer(puzzle.terms) != puzzle.naive
        assert not stated_in(sample.context)


def test_rules_are_met_by_the_law_of_zipf() -> None:
    world = World(0, 20)
    met = Counter(world.rule_of(sample.context) for sample in world.sample(8_000, seed=2))
    weights = [rank**-0.8 for rank in range(1, 21)]
    for index in (0, 1, 4, 19):
        assert met[world.rule(index)] / 8_000 == pytest.approx(weights[index] / sum(weights), rel=0.15)


def test_a_flatter_law_may_be_asked_for() -> None:
    world = World(0, 4, zipf=0.0)
    met = Counter(world.rule_of(sample.context) for sample in world.sample(2_000, seed=2))
    assert all(400 < count < 600 for count in met.values())


def test_the_right_answer_scores_one_and_any_other_gets_feedback_that_states_the_rule() -> None:
    for sample in WORLD.sample(60, seed=9):
        right = WORLD.score(sample, f" {sample.target} ")
        assert (right.score, right.source, stated_in(right.feedback)) == (1.0, "ground_truth", ())
        for answer in ("1.00", "", "I do not know", "NaN", "sNaN", "Infinity"):
            wrong = WORLD.score(sample, answer)
            assert (wrong.score, wrong.source) == (0.0, "ground_truth")
            assert [one.specific for one in stated_in(wrong.feedback)] == [WORLD.rule_of(sample.context)]


def test_feedback_uses_all_three_wordings() -> None:
    samples = WORLD.sample(200, seed=3)
    ways = Counter[int]()
    for sample in samples:
        rule = WORLD.rule_of(sample.context)
        assert rule is not None
        feedback = WORLD.score(sample, "0").feedback
        ways.update(way for way in range(WAYS) if rule.wording(way) in feedback)
    assert sum(ways.values()) == 200
    assert all(count > 40 for count in ways.values())


def test_numbers_are_compared_as_numbers() -> None:
    sample = Sample(id="s", context="2 + 2 = ?", target="1234.50")
    assert WORLD.score(sample, "1,234.5").score == 1.0
    assert WORLD.score(sample, "1234.51").score == 0.0


def test_a_foreign_sample_is_compared_with_its_target_and_one_without_is_not_scored() -> None:
    foreign = Sample(id="s", context="Which city?", target="Paris")
    assert WORLD.score(foreign, "Paris").score == 1.0
    assert WORLD.score(foreign, "Rome").feedback == "Expected Paris, got Rome."
    assert WORLD.score(Sample(id="s", context="Which city?"), "Paris").score is None


def test_a_question_of_another_world_has_no_rule_here() -> None:
    (sample,) = World(99).sample(1, seed=0)
    assert WORLD.rule_of(sample.context) is None
    assert stated_in(WORLD.score(sample, "1").feedback) == ()


def test_a_day_holds_runs_that_all_failed_and_whose_feedback_states_the_rule() -> None:
    runs = day(WORLD, 40, seed=6)
    assert len({run.trace_id for run in runs}) == 40
    for run in runs:
        assert run.outcome.score == 0.0
        assert stated_in(run.outcome.feedback)[0].specific == WORLD.rule_of(run.task)
        assert run.cited == ()


def test_a_day_as_rows_says_the_same_and_lies_within_that_day() -> None:
    rows = [json.loads(line) for line in day_jsonl(WORLD, 30, 6, date(2026, 3, 8)).splitlines()]
    runs = day(WORLD, 30, 6)
    assert [row["id"] for row in rows] == [run.trace_id for run in runs]
    assert [row["feedback"] for row in rows] == [run.outcome.feedback for run in runs]
    assert set(rows[0]) == {"id", "input", "output", "score", "feedback", "timestamp"}
    times = [datetime.fromisoformat(row["timestamp"]) for row in rows]
    assert times == sorted(times)
    assert times[0] == datetime(2026, 3, 8, tzinfo=UTC)
    assert times[-1].date() == date(2026, 3, 8)


def test_a_day_without_traces_is_empty() -> None:
    assert day_jsonl(WORLD, 0, 6, date(2026, 3, 8)) == b""


@settings(max_examples=50)
@given(st.integers(0, CAPACITY - 1), st.integers(0, 2), st.text(max_size=40), st.text(max_size=40))
def test_a_rule_is_found_between_any_other_words(position: int, way: int, before: str, after: str) -> None:
    rule = Specific(topic(position), "fee", "12.5")
    assert rule in [one.specific for one in stated_in(f"{before} {rule.wording(way)} {after}")]
