"""What code joins by itself, and what it leaves to a reader."""

from __future__ import annotations

import pytest
from builders import add, bullet, operation
from hypothesis import given
from hypothesis import strategies as st

from combee_core.joining import but_for_values, equal, joined, needs_a_reader, of_one_trace, together, wording
from combee_core.types import Operation

FIRST, SECOND = bullet("calc-00001", "Round first."), bullet("calc-00002", "Mind the fees.")


def update(text: str, trace: str = "t1", of: object = FIRST) -> Operation:
    return operation("UPDATE", text, of, sources=(trace,))  # type: ignore[arg-type]


# equal


def test_the_same_words_are_one_however_they_are_spaced_and_stopped() -> None:
    ops = [add("Use percent.", "t1"), add("Ask first.", "t2"), add("use  percent", "t3")]
    assert equal(ops) == [(0, 2), (1,)]


def test_names_that_differ_in_capitals_stay_two() -> None:
    assert equal([add("Pass userId.", "t1"), add("Pass userid.", "t2")]) == [(0,), (1,)]


def test_an_addition_joins_the_change_that_says_the_same() -> None:
    assert equal([add("Use percent.", "t1"), update("Use percent.")]) == [(0, 1)]


def test_two_bullets_that_would_become_one_text_are_for_a_reader() -> None:
    ops = [update("Use percent."), update("Use percent.", of=SECOND), add("Use percent.", "t2")]
    assert equal(ops) == [(0,), (1,), (2,)]


def test_removals_of_one_bullet_are_one_and_of_two_are_two() -> None:
    ops = [operation("REMOVE", "", FIRST), operation("REMOVE", "", SECOND), operation("REMOVE", "", FIRST)]
    assert equal(ops) == [(0, 2), (1,)]


# one trace


def test_two_wordings_of_one_trace_are_one() -> None:
    ops = [add("Add a fee of 5.", "t1"), add("A fee of 5 goes on top.", "t1"), add("There is a fee of 5.", "t2")]
    assert of_one_trace(ops, [[0, 1, 2]]) == [(0, 1), (2,)]
    assert of_one_trace(ops, [[0], [1], [2]]) == [(0,), (1,), (2,)]


def test_a_value_or_a_name_that_differs_stays_apart_even_within_one_trace() -> None:
    for one, other in ("Add a fee of 5.", "Add a fee of 7."), ("Call get_fee() for it.", "Call get_rate() for it."):
        assert of_one_trace([add(one, "t1"), add(other, "t1")], [[0, 1]]) == [(0,), (1,)]


def test_what_several_traces_state_is_not_joined_by_code() -> None:
    assert of_one_trace([add("Add 5.", "t1", "t2"), add("Add 5, please.", "t1", "t2")], [[0, 1]]) == [(0,), (1,)]


# together


def test_what_is_alike_or_touches_one_bullet_belongs_together() -> None:
    ops = [add("a", "t1"), update("b"), add("c", "t2"), operation("REMOVE", "", FIRST), add("d", "t3")]
    assert together(ops, [[0, 2], [1], [3], [4]]) == [(0, 2), (1, 3), (4,)]
    assert together(ops, [[0, 3], [1, 2], [4]]) == [(0, 1, 2, 3), (4,)]


def test_texts_that_are_the_same_but_for_a_value_must_meet() -> None:
    ops = [add("Ratio as percent.", "t1"), add("Fee of 5.", "t1"), add("Ratio as decimal", "t2"), add("7", "t1")]
    assert but_for_values([*ops, operation("REMOVE", "", FIRST), operation("REMOVE", "", SECOND)]) == [[0, 2], [1]]


@given(st.lists(st.lists(st.integers(0, 30), min_size=2, max_size=4), max_size=12))
def test_belonging_together_is_a_partition(alike: list[list[int]]) -> None:
    ops = [add(f"text {n}", "t1") for n in range(31)]
    found = together(ops, alike)
    assert sorted(at for places in found for at in places) == list(range(31))
    whose = {at: number for number, places in enumerate(found) for at in places}
    assert all(len({whose[at] for at in group}) == 1 for group in alike)


@pytest.mark.parametrize(
    ("ops", "needed"),
    [
        ([], False),
        ([add("a", "t1", "t2")], False),
        ([add("a", "t1"), add("b", "t1")], False),
        ([add("a", "t1"), add("b", "t2")], True),
        ([update("a"), update("b")], True),
    ],
)
def test_only_different_texts_of_different_traces_or_on_one_bullet_need_a_reader(
    ops: list[Operation], needed: bool
) -> None:
    assert needs_a_reader(ops) is needed


# joined


def test_joined_operations_have_everybodys_traces_and_origins_and_the_most_frequent_words() -> None:
    ops = [
        add("use percent", "t3", origin="curate-g01"),
        add("Use percent.", "t1", origin="curate-g02"),
        add("Use percent.", "t2", origin="curate-g02").model_copy(update={"inferred": True}),
    ]
    delta = joined(ops)
    (one,) = delta.operations
    assert (one.text, one.sources, one.origin, one.inferred) == (
        "Use percent.",
        ("t1", "t2", "t3"),
        "curate-g01, curate-g02",
        True,
    )
    assert [(f.text, f.fate, f.because, f.into) for f in delta.fates] == [
        ("use percent", "merged", "into: Use percent.", 0),
        ("Use percent.", "merged", "into: Use percent.", 0),
        ("Use percent.", "merged", "into: Use percent.", 0),
    ]


def test_a_change_of_a_bullet_stands_for_the_addition_that_says_the_same() -> None:
    (one,) = joined([add("Use percent.", "t1"), add("Use percent.", "t2"), update("Use percent", "t3")]).operations
    assert (one.kind, one.bullet_ids, one.sources) == ("UPDATE", (FIRST.id,), ("t1", "t2", "t3"))


def test_one_operation_joined_is_itself_and_kept() -> None:
    delta = joined([add("a", "t1")])
    assert delta.operations == (add("a", "t1"),)
    assert delta.fates[0].fate == "kept"


def test_a_removal_is_about_the_text_that_it_removes() -> None:
    assert wording(operation("REMOVE", "", FIRST)) == "Round first."
    assert wording(update("Round last.")) == "Round last."
