"""The merger's answer: sources are inherited, nothing is touched that nobody proposed, each operation has a fate."""

from __future__ import annotations

from typing import Any

import pytest
from builders import numbered, operation
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_json, near_operations

from combee_core.errors import AnswerMalformed
from combee_core.learners.ace.merging import merged
from combee_core.types import Conflict, Delta, Operation, OperationFate

BOOK = numbered("Round first.", "Round last.", "Be careful.")
FIRST, SECOND, THIRD = BOOK.bullets


def add(text: str, trace: str, number: int = 1, **given: Any) -> Operation:
    return operation("ADD", text, section="FORMULAS", sources=(trace,), origin=f"curate-g{number:02d}", **given)


ADDS = (add("Use percent.", "t1"), add("Answer in percent.", "t2", 2), add("Use page_limit 20.", "t3", 2))


def merge(*raw: Any, proposed: tuple[Operation, ...] = ADDS, **answer: Any) -> Delta:
    return merged({"operations": list(raw), **answer}, proposed, BOOK)


def fates(delta: Delta) -> list[tuple[str, str]]:
    return [(fate.fate, fate.because) for fate in delta.fates]


# joined, kept, dropped


def test_what_says_the_same_becomes_one_with_the_traces_of_both() -> None:
    delta = merge(
        {"type": "ADD", "section": "FORMULAS", "content": "Answer in percent.", "from": [1, 2]},
        {"type": "ADD", "section": "FORMULAS", "content": "Use page_limit 20.", "from": ["o3"]},
    )
    assert [(op.text, op.sources, op.origin, op.inferred) for op in delta.operations] == [
        ("Answer in percent.", ("t1", "t2"), "curate-g01, curate-g02", False),
        ("Use page_limit 20.", ("t3",), "curate-g02", False),
    ]
    assert fates(delta) == [
        ("merged", "into: Answer in percent."),
        ("merged", "into: Answer in percent."),
        ("kept", ""),
    ]
    assert delta.fates[0] == OperationFate(
        text="Use percent.", origin="curate-g01", fate="merged", because="into: Answer in percent.", into=0
    )
    assert [fate.into for fate in delta.fates] == [0, 0, 1]


def test_a_reason_for_dropping_is_kept_and_silence_is_one() -> None:
    delta = merge(
        {"type": "ADD", "content": "Use percent.", "from": [1]}, dropped=[{"op": "o2", "because": "contradicts o1"}]
    )
    assert fates(delta) == [("kept", ""), ("dropped", "contradicts o1"), ("dropped", "the merger did not mention it")]


def test_a_reworded_operation_says_so() -> None:
    delta = merge({"type": "ADD", "content": "Use percent, 20 and not 0.2.", "from": [1]})
    assert fates(delta)[0] == ("kept", "as: Use percent, 20 and not 0.2.")


def test_used_and_dropped_is_used() -> None:
    delta = merge({"type": "ADD", "content": "Use percent.", "from": [1]}, dropped=[{"op": 1, "because": "no"}])
    assert fates(delta)[0] == ("kept", "")


@pytest.mark.parametrize("item", [{"op": 9, "because": "x"}, {"because": "x"}, "o1", None, {"op": "9" * 5000}])
def test_a_reason_for_nothing_is_listed(item: Any) -> None:
    assert [note.where for note in merge(dropped=[item]).set_aside] == ["merge"]


def test_a_reason_may_be_missing_and_dropped_may_be_anything() -> None:
    assert fates(merge(dropped=[{"op": 1}]))[0] == ("dropped", "no reason given")
    useless: list[Any] = [None, {}, "o1"]
    for nothing in useless:
        assert fates(merge(dropped=nothing))[0] == ("dropped", "the merger did not mention it")


def test_a_bare_array_is_an_answer_and_a_text_is_none() -> None:
    assert [fate for fate, _ in fates(merged([], ADDS, BOOK))] == ["dropped"] * 3
    with pytest.raises(AnswerMalformed):
        merged({"reasoning": "x"}, ADDS, BOOK)


# the merger proposes nothing of its own


def test_an_add_without_numbers_rests_on_the_closest_and_is_marked() -> None:
    delta = merge({"type": "ADD", "content": "Use page_limit 20 always."})
    assert [(op.sources, op.inferred) for op in delta.operations] == [(("t3",), True)]
    assert [fate for fate, _ in fates(delta)] == ["dropped", "dropped", "kept"]


def test_an_add_without_a_section_goes_where_it_was_proposed() -> None:
    delta = merge({"type": "ADD", "section": None, "content": "Use percent.", "from": [1]})
    assert delta.operations[0].section == "FORMULAS"


@pytest.mark.parametrize(
    "slip",
    [
        {"bullet_ids": ["o1", "o2"]},
        {"bullet_ids": ["o1", "o2"], "from": [1, 2]},
        {"bullet_ids": [], "from": [1, 2]},
        {"bullet_ids": None, "from": "o1, o2"},
    ],
)
def test_a_merge_of_proposed_adds_is_one_add(slip: dict[str, Any]) -> None:
    delta = merge({"type": "MERGE", "content": "Answer in percent.", **slip})
    (op,) = delta.operations
    assert (op.kind, op.text, op.section, op.sources) == ("ADD", "Answer in percent.", "FORMULAS", ("t1", "t2"))
    assert [fate for fate, _ in fates(delta)] == ["merged", "merged", "dropped"]
    assert delta.set_aside == ()


def test_an_update_that_rests_on_adds_alone_overwrites_no_bullet() -> None:
    delta = merge({"type": "UPDATE", "bullet_id": "calc-00001", "content": "Use percent.", "from": [1]})
    assert [(op.kind, op.text, op.bullet_ids) for op in delta.operations] == [("ADD", "Use percent.", ())]


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "REMOVE", "bullet_id": "calc-00003"},
        {"type": "REMOVE", "bullet_id": "calc-00003", "from": [1]},
        {"type": "UPDATE", "bullet_id": "calc-00003", "content": "x"},
        {"type": "MERGE", "bullet_ids": ["calc-00001", "calc-00003"], "content": "x", "from": [2]},
    ],
)
def test_a_bullet_that_nobody_proposed_to_change_is_not_touched(raw: dict[str, Any]) -> None:
    proposed = (add("Use percent.", "t1"), operation("UPDATE", "Never round first.", FIRST, sources=("t2",)))
    delta = merge(raw, proposed=proposed)
    assert delta.operations == ()
    assert [note.reason for note in delta.set_aside] == ["nobody proposed to change calc-00003"]


def test_the_fate_of_an_operation_tells_why_the_mergers_use_of_it_was_refused() -> None:
    delta = merge({"type": "ADD", "content": "Use percent.", "from": [1], "gross": "x"})
    assert fates(delta)[0] == ("dropped", "the merger's operation was refused: unknown key 'gross'")
    assert [note.where for note in delta.set_aside] == ["merge"]


def test_updates_merges_and_removals_pass_through_with_their_bullets() -> None:
    proposed = (
        operation("UPDATE", "Never round first.", FIRST, sources=("t1",), origin="curate-g01"),
        operation("REMOVE", "", THIRD, sources=("t2",), origin="curate-g01"),
        operation("REMOVE", "", THIRD, sources=("t3",), origin="curate-g02"),
    )
    delta = merge(
        {"type": "UPDATE", "bullet_id": "calc-00001", "content": "Never round first.", "from": [1]},
        {"type": "REMOVE", "bullet_id": "calc-00003", "from": [2, 3]},
        proposed=proposed,
    )
    assert [(op.kind, op.bullet_ids, op.seen, op.sources) for op in delta.operations] == [
        ("UPDATE", ("calc-00001",), ("Round first.",), ("t1",)),
        ("REMOVE", ("calc-00003",), ("Be careful.",), ("t2", "t3")),
    ]


def test_a_removal_without_numbers_rests_on_the_removal_of_the_same_bullet() -> None:
    proposed = (
        operation("REMOVE", "", FIRST, sources=("t1",)),
        operation("REMOVE", "", SECOND, sources=("t2",)),
    )
    delta = merge({"type": "REMOVE", "bullet_id": "calc-00002"}, proposed=proposed)
    assert [(op.sources, op.inferred) for op in delta.operations] == [(("t2",), True)]


def test_a_claim_on_all_operations_is_reduced_to_those_that_say_it() -> None:
    proposed = tuple(add(f"The fee on item {n} is {n * 7}.", f"t{n}") for n in range(1, 7))
    everything = list(range(1, 7))
    (general,) = merge({"type": "ADD", "content": "Mind the fees.", "from": everything}, proposed=proposed).operations
    assert general.inferred
    assert len(general.sources) <= 3
    third = merge({"type": "ADD", "content": proposed[2].text, "from": everything}, proposed=proposed)
    assert [(op.sources, op.inferred) for op in third.operations] == [(("t3",), True)]
    same = tuple(add("Use percent.", f"t{n}") for n in range(1, 7))
    (kept,) = merge({"type": "ADD", "content": "Use percent.", "from": everything}, proposed=same).operations
    assert (len(kept.sources), kept.inferred) == (6, False)


def test_what_was_inferred_stays_inferred() -> None:
    delta = merge({"type": "ADD", "content": "x", "from": [1]}, proposed=(add("x", "t1", inferred=True),))
    assert [op.inferred for op in delta.operations] == [True]


# contradictions


def test_a_contradiction_that_the_merger_names_has_both_texts_their_traces_and_what_it_is_about() -> None:
    (conflict,) = merge(conflicts=[{"ops": [1, "o3"], "bullet_ids": [], "about": "percent or pages"}]).conflicts
    assert conflict == Conflict(
        texts=("Use page_limit 20.", "Use percent."), sources=("t1", "t3"), reason="percent or pages"
    )


def test_a_contradiction_with_a_bullet_of_the_playbook_shows_the_bullet() -> None:
    (conflict,) = merge(conflicts=[{"ops": [2], "bullet_ids": ["[calc-00001]"], "about": "when to round"}]).conflicts
    assert conflict.texts == ("Answer in percent.", "Round first.")
    assert conflict.sources == ("t2",)


@pytest.mark.parametrize("item", [{"ops": 1}, {"ops": "o1"}, {"ops": [1.0]}, {"ops": "1, 99", "about": None}])
def test_a_contradiction_is_read_as_it_was_meant(item: Any) -> None:
    (conflict,) = merge(conflicts=[item]).conflicts
    assert (conflict.texts, conflict.reason) == (("Use percent.",), "the merger says so")


@pytest.mark.parametrize("item", [{"ops": []}, {"ops": [9]}, {"about": "x"}, "o1 and o2", None, [1, 2]])
def test_a_contradiction_of_nothing_that_was_shown_is_listed(item: Any) -> None:
    delta = merge(conflicts=[item])
    assert delta.conflicts == ()
    assert [note.reason for note in delta.set_aside] == ["names no operation that was shown"]


@pytest.mark.parametrize("nothing", [None, {}, "none", 3, []])
def test_an_answer_without_contradictions_has_none(nothing: Any) -> None:
    assert merge(conflicts=nothing).conflicts == ()
    assert merge().conflicts == ()


# for any answer


@settings(max_examples=300)
@given(st.lists(near_operations | any_json, max_size=6), any_json)
def test_whatever_the_answer_every_operation_has_one_fate_and_sources_come_from_those_proposed(
    raw: list[Any], other: Any
) -> None:
    proposed = (
        *ADDS,
        operation("UPDATE", "x", FIRST, sources=("t4",)),
        operation("REMOVE", "", SECOND, sources=("t5",)),
    )
    delta = merge(*raw, proposed=proposed, dropped=other, conflicts=other)
    assert [fate.text for fate in delta.fates] == [op.text for op in proposed]
    for fate in delta.fates:
        assert (fate.into is None) == (fate.fate == "dropped")
        assert fate.into is None or fate.into < len(delta.operations)
    for op in delta.operations:
        assert op.sources
        assert set(op.sources) <= {"t1", "t2", "t3", "t4", "t5"}
        assert set(op.bullet_ids) <= {FIRST.id, SECOND.id}
    used = [fate for fate in delta.fates if fate.fate != "dropped"]
    assert bool(used) == bool(delta.operations)
