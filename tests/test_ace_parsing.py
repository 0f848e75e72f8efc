"""The answers of generator, reflector and curator become nouns; a bad item costs itself alone."""

from __future__ import annotations

from typing import Any

import pytest
from builders import group, numbered, reflection, trajectory
from hypothesis import given
from hypothesis import strategies as st

from combee_core.errors import AnswerMalformed
from combee_core.learners.ace import parsing
from combee_core.ports import Solution
from combee_core.types import BulletTag, Delta, Reflection

BOOK = numbered("Round first.", "Round last.")
ROE = "For ROE answer in percent: 20, not 0.2."
FIVE = group(
    *(reflection(f"t{n}", words) for n, words in enumerate([ROE, "a b c", "d e f", "g h i", "j k l"])), number=3
)


def reflect(**answer: Any) -> Reflection:
    return parsing.reflection({"key_insight": "", **answer}, trajectory("t7"))


def curate(*operations: Any) -> Delta:
    return parsing.curated({"operations": list(operations)}, FIVE, BOOK)


# the generator


def test_a_solution_has_the_answer_and_the_ids_that_were_used() -> None:
    answer = {"reasoning": " r ", "bullet_ids": ["calc-00001", "[calc-00002]", "calc-00001"], "final_answer": " 20 "}
    assert parsing.solution(answer) == Solution("20", ("calc-00001", "calc-00002"), "r")


@pytest.mark.parametrize(
    ("given_ids", "read"),
    [(None, ()), ([], ()), ("calc-1, [calc-2]", ("calc-1", "calc-2")), ([71], ("71",)), (["", None], ()), ("", ())],
)
def test_cited_ids_are_read_from_what_models_write(given_ids: Any, read: tuple[str, ...]) -> None:
    assert parsing.solution({"final_answer": "x", "bullet_ids": given_ids}).cited == read


@pytest.mark.parametrize(
    ("answer", "text"), [(20, "20"), (0.5, "0.5"), (True, "true"), (["a", 1], '["a", 1]'), ("", "")]
)
def test_an_answer_that_is_no_text_becomes_its_json(answer: Any, text: str) -> None:
    assert parsing.solution({"final_answer": answer}).answer == text


@pytest.mark.parametrize("data", [{}, {"final_answer": None}, [], "20", None, {"answer": "20"}])
def test_without_a_final_answer_the_generator_is_asked_again(data: Any) -> None:
    with pytest.raises(AnswerMalformed, match="no final_answer"):
        parsing.solution(data)


# the reflector


def test_a_reflection_takes_every_field_and_the_outcome_of_its_run() -> None:
    read = reflect(
        key_insight=f" {ROE}\n",
        reasoning="a",
        error_identification="b",
        root_cause_analysis="c",
        correct_approach="d",
        bullet_tags=[{"id": "calc-00001", "tag": "harmful"}],
    )
    assert read == Reflection(
        trace_id="t7",
        key_insight=ROE,
        reasoning="a",
        error_identification="b",
        root_cause_analysis="c",
        correct_approach="d",
        tags=(BulletTag(bullet_id="calc-00001", tag="harmful"),),
        outcome=trajectory().outcome,
    )


@pytest.mark.parametrize("nothing", ["", " \n", None, [], {}, "None", "n/a", "N/A.", "null", "Nothing", "-", '""'])
def test_an_insight_that_says_nothing_is_nothing(nothing: Any) -> None:
    assert reflect(key_insight=nothing).is_nothing


@pytest.mark.parametrize(
    "text", ["None of the tools takes page 0.", "No", "0", "Nothing may be rounded before the end."]
)
def test_an_insight_that_only_begins_like_nothing_is_one(text: str) -> None:
    assert reflect(key_insight=text).key_insight == text


@pytest.mark.parametrize("data", [{}, {"insight": "x"}, [], "x", None, [{"key_insight": "x"}]])
def test_without_a_key_insight_the_reflector_is_asked_again(data: Any) -> None:
    with pytest.raises(AnswerMalformed, match="no key_insight"):
        parsing.reflection(data, trajectory())


@pytest.mark.parametrize(
    "tag",
    [
        {"id": "calc-00072", "tag": "helpful"},
        {"id": "[calc-00072]", "tag": "Helpful"},
        {"id": " calc-00072 ", "tag": " HELPFUL "},
        {"id": "calc-00072", "tag": "helpful", "why": "it led to the answer"},
    ],
)
def test_a_tag_finds_its_bullet_in_brackets_and_in_capitals(tag: dict[str, str]) -> None:
    read = reflect(bullet_tags=[tag])
    assert read.tags == (BulletTag(bullet_id="calc-00072", tag="helpful"),)
    assert read.set_aside == ()


@pytest.mark.parametrize(
    "tag", [{"id": "calc-1", "tag": "useful"}, {"id": "", "tag": "helpful"}, {"tag": "helpful"}, "calc-1", 3, None, []]
)
def test_a_strange_tag_is_listed_and_the_good_ones_count(tag: Any) -> None:
    read = reflect(bullet_tags=[tag, {"id": "calc-2", "tag": "harmful"}])
    assert read.tags == (BulletTag(bullet_id="calc-2", tag="harmful"),)
    assert [(note.reason, note.where) for note in read.set_aside] == [("not a bullet tag", "reflect-t7")]


def test_tags_that_are_no_list_are_listed_unless_they_are_nothing() -> None:
    assert len(reflect(bullet_tags={"calc-1": "helpful"}).set_aside) == 1
    assert len(reflect(bullet_tags="calc-1 helpful").set_aside) == 1
    assert reflect(bullet_tags={"id": "calc-1", "tag": "helpful"}).tags
    empty: list[Any] = [None, [], {}, ""]
    for nothing in empty:
        assert reflect(bullet_tags=nothing).set_aside == ()


# the curator


def test_numbers_become_the_traces_of_their_reflections() -> None:
    delta = curate({"type": "ADD", "section": "A", "content": ROE, "from": [1, "r3"]})
    (op,) = delta.operations
    assert (op.sources, op.inferred, op.origin) == (("t0", "t2"), False, "curate-g03")
    assert delta.set_aside == ()


def test_a_bare_array_and_an_empty_one_are_answers() -> None:
    two = [{"type": "ADD", "content": "x", "from": [1]}, {"type": "ADD", "content": "y", "from": [2]}]
    assert [op.text for op in parsing.curated(two, FIVE, BOOK).operations] == ["x", "y"]
    assert parsing.curated([], FIVE, BOOK) == Delta()
    with pytest.raises(AnswerMalformed):
        parsing.curated({"bullets": []}, FIVE, BOOK)


def test_a_bad_item_costs_itself_alone_and_is_listed_with_its_group() -> None:
    delta = curate(
        {"type": "ADD", "content": "x", "from": [1]},
        {"content": "without a type"},
        {"type": "UPDATE", "bullet_id": "calc-00999", "content": "y", "from": [2]},
        {"type": "ADD", "content": 'use "net" income', "gross": "", "from": [1]},
        {"type": "delete", "bullet_id": "calc-00002", "from": [4]},
    )
    assert [(op.kind, op.text, op.sources) for op in delta.operations] == [
        ("ADD", "x", ("t0",)),
        ("REMOVE", "", ("t3",)),
    ]
    assert [note.reason for note in delta.set_aside] == [
        "unknown type None",
        "UPDATE of calc-00999, which is not in the playbook",
        "unknown key 'gross'",
    ]
    assert {note.where for note in delta.set_aside} == {"curate-g03"}


def test_numbers_that_point_at_nothing_are_refused_and_the_traces_inferred_if_none_is_left() -> None:
    delta = curate({"type": "ADD", "content": ROE, "from": [0, 6, "o1"]})
    assert [(op.sources, op.inferred) for op in delta.operations] == [(("t0",), True)]
    assert len(delta.set_aside) == 3
    some = curate({"type": "ADD", "content": ROE, "from": [2, 6]})
    assert [(op.sources, op.inferred) for op in some.operations] == [(("t1",), False)]
    assert len(some.set_aside) == 1


def test_a_claim_on_the_whole_group_is_reduced_to_the_trace_that_states_it() -> None:
    delta = curate({"type": "ADD", "content": ROE, "from": [1, 2, 3, 4, 5]})
    assert [(op.sources, op.inferred) for op in delta.operations] == [(("t0",), True)]


def test_a_removal_is_traced_by_the_text_that_it_takes_out() -> None:
    entries = group(reflection("t1", "Round first. That is wrong."), reflection("t2", "x y z"))
    delta = parsing.curated([{"type": "REMOVE", "bullet_id": "calc-00001"}], entries, BOOK)
    assert [(op.sources, op.inferred) for op in delta.operations] == [(("t1",), True)]


@given(st.lists(st.integers(-2, 12), max_size=8), st.integers(1, 3))
def test_sources_are_traces_of_the_group_each_once_however_many_copies_there_are(
    numbers: list[int], copies: int
) -> None:
    entries = group(*(FIVE.entries * copies))
    (op,) = parsing.curated([{"type": "ADD", "content": ROE, "from": numbers}], entries, BOOK).operations
    assert list(op.sources) == sorted(set(op.sources))
    assert op.sources
    assert set(op.sources) <= {entry.trace_id for entry in entries.entries}
