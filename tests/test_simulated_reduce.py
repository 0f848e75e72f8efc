"""The simulated curator and merger: what they write, join, and leave out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_calls import ACE, EMPTY, WORLD, add, book, curated, merge, reflection, rule_reflections, rules_of, update

from combee_core.playbook import Playbook, Section
from combee_core.simulation.overload import FINER, entries, merged
from combee_core.simulation.platitudes import is_platitude, platitude
from combee_core.simulation.responder import respond
from combee_core.simulation.specifics import Specific
from combee_core.types import Group, Operation, OperationKind


def test_wordings_of_one_rule_are_one_specific_and_all_their_entries_are_named() -> None:
    rule = WORLD.rule(0)
    operations = curated([reflection(n, rule.wording(n % 3)) for n in range(7)])
    assert [(op["type"], op["from"]) for op in operations] == [("ADD", [1, 2, 3, 4, 5, 6, 7])]
    assert rules_of(operations) == [rule]
    assert "FORMULAS" in operations[0]["section"]


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 3), st.integers(0, 1_000))
def test_a_call_writes_no_more_than_its_curve_allows_and_the_rest_is_one_platitude(
    m: int, per_rule: int, seed: int
) -> None:
    operations = curated(rule_reflections(m, per_rule), seed=seed)
    platitudes = [op for op in operations if is_platitude(op["content"])]
    written = [op for op in operations if op not in platitudes]
    allowed = min(m, entries(m))
    assert int(allowed) <= len(written) <= int(allowed) + 1
    assert len(set(rules_of(written))) == len(written) <= m
    assert len(platitudes) == (1 if len(written) < m else 0)
    named = {number for op in written for number in op["from"]}
    for op in platitudes:
        assert 1 <= len(op["from"]) <= 2
        assert named.isdisjoint(op["from"])


def test_on_average_a_call_writes_what_the_curve_says() -> None:
    for m in (3, 10, 30):
        sizes = [len(rules_of(curated(rule_reflections(m), seed=seed))) for seed in range(300)]
        assert sum(sizes) / 300 == pytest.approx(min(m, entries(m)), abs=0.1)


def test_the_other_model_follows_its_own_curve() -> None:
    question = ACE.curate(EMPTY, Group(number=1, of=1, entries=tuple(rule_reflections(60))))
    sizes = [len(rules_of(respond(question.prompt.messages, s, FINER)["operations"])) for s in range(200)]
    assert sum(sizes) / 200 == pytest.approx(entries(60, FINER), abs=0.1)


def test_what_occurs_more_often_is_written_more_often() -> None:
    often = [reflection(100 + n, WORLD.rule(0).wording(n % 3)) for n in range(6)]
    written = Counter(
        rule for seed in range(200) for rule in rules_of(curated([*rule_reflections(40), *often], seed=seed))
    )
    others = [written[WORLD.rule(index)] for index in range(1, 40)]
    assert written[WORLD.rule(0)] > 2 * sum(others) / len(others)


def test_copies_of_a_reflection_count_as_occurrences_and_both_numbers_are_named() -> None:
    one, other = rule_reflections(2)
    operations = curated([one, other, one])
    assert sorted(op["from"] for op in operations) == [[1, 3], [2]]


def test_a_rule_that_the_playbook_holds_is_not_proposed_again_and_does_not_count() -> None:
    held = [WORLD.rule(index).wording(1) for index in range(4)]
    operations = curated(rule_reflections(6), book(*held))
    assert set(rules_of(operations)) == {WORLD.rule(4), WORLD.rule(5)}
    assert curated(rule_reflections(4), book(*held)) == []


def test_a_harmful_platitude_is_updated_to_one_specific_and_counts_as_one_entry() -> None:
    state = book(platitude("x"), "Round every answer.")
    entries_ = [reflection(n, WORLD.rule(n).wording(0), harmful="calc-00001") for n in range(10)]
    operations = curated(entries_, state)
    updates = [op for op in operations if op["type"] == "UPDATE"]
    assert [op["bullet_id"] for op in updates] == ["calc-00001"]
    assert len(rules_of(operations)) in (4, 5)


def test_a_harmful_bullet_that_holds_another_rule_or_is_gone_is_left_alone() -> None:
    state = book(WORLD.rule(50).wording(0))
    for bullet in ("calc-00001", "calc-09999"):
        operations = curated([reflection(1, WORLD.rule(0).wording(0), harmful=bullet)], state)
        assert [op["type"] for op in operations] == ["ADD"]


def test_a_bullet_with_a_wrong_number_is_corrected() -> None:
    rule = WORLD.rule(0)
    wrong = Specific(rule.topic, "fee", "999").wording(0)
    operations = curated([reflection(1, rule.wording(0), harmful="calc-00001")], book(wrong))
    assert [(op["type"], op["bullet_id"]) for op in operations] == [("UPDATE", "calc-00001")]


def test_foreign_insights_are_compared_by_their_words() -> None:
    texts = ["Call book_flight with bags=3.", "call  book_flight, with BAGS=3", "Tell the user: 327."]
    operations = curated([reflection(n, text) for n, text in enumerate(texts)])
    assert [(op["content"], op["from"]) for op in operations] == [(texts[0], [1, 2]), (texts[2], [3])]
    assert curated([reflection(1, texts[1])], book(texts[0])) == []


def test_sections_are_those_of_the_playbook() -> None:
    entries_ = [*rule_reflections(30), reflection(99, "Call book_flight with bags=3.")]
    for state in (EMPTY, Playbook(sections=(Section(name="DESK"),))):
        names = {section.name for section in state.sections}
        assert {op["section"] for op in curated(entries_, state)} <= names
    assert {op["section"] for op in curated(entries_, Playbook())} == {"OTHERS"}


def test_an_empty_group_or_an_unknown_form_proposes_nothing() -> None:
    assert curated([]) == []


def test_the_same_rule_in_other_words_is_joined_and_all_numbers_are_named() -> None:
    rule, other = WORLD.rule(0), WORLD.rule(1)
    proposals = [add(rule.wording(0)), add(other.wording(0)), add(rule.wording(1)), add(rule.wording(2))]
    for seed in range(30):
        said = merge(proposals, seed=seed)
        numbers = sorted([*(op["from"] for op in said["operations"]), *([d["op"]] for d in said["dropped"])])
        assert [1, 3, 4] in numbers or [1] in numbers
        assert sorted(n for part in numbers for n in part) == [1, 2, 3, 4]
    assert len(merge(proposals, seed=0)["operations"]) <= 2


@settings(max_examples=30)
@given(st.integers(1, 100), st.integers(0, 1_000))
def test_a_merge_writes_its_share_of_distinct_operations_and_accounts_for_each(u: int, seed: int) -> None:
    proposals = [add(WORLD.rule(index).wording(way), index) for way in (0, 1) for index in range(u)]
    said = merge(proposals, seed=seed)
    assert int(merged(u)) <= len(said["operations"]) <= int(merged(u)) + 1
    accounted = [n for op in said["operations"] for n in op["from"]] + [d["op"] for d in said["dropped"]]
    assert sorted(accounted) == list(range(1, 2 * u + 1))
    assert all(d["because"] for d in said["dropped"])


def test_on_average_a_merge_writes_what_its_curve_says() -> None:
    proposals = [add(WORLD.rule(index).wording(0), index) for index in range(13)]
    sizes = [len(merge(proposals, seed=seed)["operations"]) for seed in range(300)]
    assert sum(sizes) / 300 == pytest.approx(0.95 * 13, abs=0.1)


def test_two_updates_of_one_bullet_become_an_update_and_an_addition() -> None:
    proposals = [update(WORLD.rule(n).wording(0), "calc-00001", n) for n in range(3)]
    said = next(m for m in (merge(proposals, book(platitude("x")), s) for s in range(50)) if not m["dropped"])
    assert [op["type"] for op in said["operations"]] == ["UPDATE", "ADD", "ADD"]
    assert len(set(rules_of(said["operations"]))) == 3


def test_an_update_and_an_addition_of_one_rule_become_the_update() -> None:
    rule = WORLD.rule(0)
    said = merge([add(rule.wording(0)), update(rule.wording(1), "calc-00001")], book(platitude("x")))
    assert [(op["type"], op["from"]) for op in said["operations"]] == [("UPDATE", [1, 2])]


def test_removals_and_merges_pass_through_and_none_touches_a_changed_bullet() -> None:
    state = book("a b c", "d e f", "g h i")
    proposals = [
        Operation(kind=OperationKind.MERGE, text="abc", bullet_ids=("calc-00001", "calc-00002"), seen=("", "")),
        Operation(kind=OperationKind.REMOVE, bullet_ids=("calc-00003",), seen=("",)),
        Operation(kind=OperationKind.REMOVE, bullet_ids=("calc-00001",), seen=("",)),
    ]
    changed = {"op": 3, "because": "its bullet is changed by another operation"}
    answers = [merge(proposals, state, s) for s in range(50)]
    said = next(m for m in answers if len(m["operations"]) == 2 and changed in m["dropped"])
    assert said["operations"] == [
        {"type": "MERGE", "bullet_ids": ["calc-00001", "calc-00002"], "content": "abc", "from": [1]},
        {"type": "REMOVE", "bullet_id": "calc-00003", "from": [2]},
    ]
    assert said["dropped"] == [changed]
