"""Contradictions among operations: both stand, flagged, unless a merger dropped one and said why."""

from __future__ import annotations

from typing import Any

import pytest
from builders import add, bullet, operation

from combee_core.disputes import disputes, kept_apart, told
from combee_core.fates import SILENT, UNEXPLAINED
from combee_core.types import Conflict, Delta, Operation, OperationFate

FIVE, SEVEN, MAY = add("The fee is 5.", "t1"), add("The fee is 7.", "t2"), add("The fee is due in May.", "t3")
PART = (FIVE, SEVEN, MAY)
(FEE,) = disputes(PART, [[0, 1, 2]])


def fate(of: Operation, word: Any, into: int | None, because: str = "") -> OperationFate:
    return OperationFate(text=of.text, origin=of.origin, fate=word, into=into, because=because)


def answer(*operations: Operation, fates: tuple[OperationFate, ...]) -> Delta:
    return Delta(operations=operations, fates=fates)


def ends(delta: Delta) -> list[tuple[str, str]]:
    return [(f.fate, "" if f.into is None else delta.operations[f.into].text) for f in delta.fates]


def test_a_contradiction_has_both_texts_their_traces_and_the_reason() -> None:
    assert FEE.texts == ("The fee is 5.", "The fee is 7.")
    assert FEE.sources == ("t1", "t2")
    assert FEE.reason == "they differ in values: 5 and 7"


def test_what_is_not_alike_or_says_the_same_or_has_no_words_is_no_contradiction() -> None:
    assert not list(disputes(PART, [[0], [1], [2]]))
    assert not list(disputes([FIVE, FIVE, MAY], [[0, 1, 2]]))
    removal = operation("REMOVE", "", bullet(text="The fee is 9."))
    assert not list(disputes([FIVE, removal], [[0, 1]]))


def test_a_text_that_was_made_of_a_contradiction_gives_way_to_both() -> None:
    averaged = add("The fee is 6.", "t1", "t2")
    said = answer(averaged, MAY, fates=(fate(FIVE, "merged", 0), fate(SEVEN, "merged", 0), fate(MAY, "kept", 1)))
    apart = kept_apart(PART, said, [FEE])
    assert apart.operations == (FIVE, SEVEN, MAY)
    assert ends(apart) == [("kept", FIVE.text), ("kept", SEVEN.text), ("kept", MAY.text)]
    assert apart.fates[0].because == "kept apart: they differ in values: 5 and 7"


def test_choosing_one_of_two_silently_is_undone_as_well() -> None:
    said = answer(FIVE, fates=(fate(FIVE, "merged", 0), fate(SEVEN, "merged", 0), fate(MAY, "dropped", None, "vague")))
    apart = kept_apart(PART, said, [FEE])
    assert apart.operations == (FIVE, SEVEN)
    assert apart.fates[2].because == "vague"


@pytest.mark.parametrize("conflicts", [[], [FEE]])
def test_a_merger_may_drop_one_with_its_reason(conflicts: list[Conflict]) -> None:
    fates = (fate(FIVE, "kept", 0), fate(SEVEN, "dropped", None, "an old tariff"), fate(MAY, "kept", 1))
    said = answer(FIVE, MAY, fates=fates)
    assert kept_apart(PART, said, conflicts) == said
    (shown,) = told([FEE], said.fates)
    assert shown.reason == "they differ in values: 5 and 7; the merge dropped “The fee is 7.”: an old tariff"


@pytest.mark.parametrize("because", [SILENT, UNEXPLAINED])
def test_one_side_that_was_lost_without_a_reason_stands(because: str) -> None:
    fates = (fate(FIVE, "kept", 0), fate(SEVEN, "dropped", None, because), fate(MAY, "dropped", None, because))
    apart = kept_apart(PART, answer(FIVE, fates=fates), [FEE])
    assert apart.operations == (FIVE, SEVEN)
    assert ends(apart) == [("kept", FIVE.text), ("kept", SEVEN.text), ("dropped", "")]
    assert apart.fates[1].because == "kept apart: they differ in values: 5 and 7"
    assert kept_apart(PART, answer(FIVE, fates=fates), []).operations == (FIVE,)


def test_an_honest_merge_of_what_agrees_stands() -> None:
    again = add("the fee is 5", "t4")
    said = answer(FIVE, SEVEN, fates=(fate(FIVE, "merged", 0), fate(SEVEN, "kept", 1), fate(again, "merged", 0)))
    assert kept_apart((FIVE, SEVEN, again), said, [FEE]) == said


def test_of_two_changes_of_one_bullet_the_first_stays_and_the_second_is_added() -> None:
    old = bullet(text="The fee is 3.")
    one, other = (operation("UPDATE", text, old, sources=("t1",)) for text in ("The fee is 5.", "The fee is 7."))
    (conflict,) = disputes([one, other], [[0, 1]])
    joined = answer(one, fates=(fate(one, "merged", 0), fate(other, "merged", 0)))
    forgotten = answer(one, fates=(fate(one, "kept", 0), fate(other, "dropped", None, SILENT)))
    for said in joined, forgotten:
        apart = kept_apart([one, other], said, [conflict])
        assert [(op.kind, op.text, op.bullet_ids) for op in apart.operations] == [
            ("UPDATE", "The fee is 5.", (old.id,)),
            ("ADD", "The fee is 7.", ()),
        ]


def test_each_contradiction_is_told_once_in_a_fixed_order() -> None:
    other = Conflict(texts=("a", "b"), reason="the merger says so")
    again = Conflict(texts=tuple(reversed(FEE.texts)), reason="found again")
    assert told([FEE, other, again], ()) == told([other, FEE], ()) == (FEE, other)
