"""Fates are followed from step to step."""

from __future__ import annotations

from typing import Any

import pytest
from builders import add
from hypothesis import given
from hypothesis import strategies as st

from combee_core.fates import followed, side_by_side, untouched
from combee_core.types import Delta, OperationFate, SetAside

ONE, TWO, THREE = add("one", "t1"), add("two", "t2"), add("three", "t3")


def fate(text: str, word: Any = "kept", into: int | None = 0, because: str = "") -> OperationFate:
    return OperationFate(text=text, origin="curate-g01", fate=word, because=because, into=into)


def test_what_is_not_touched_is_kept_where_it_stands() -> None:
    delta = untouched([ONE, TWO], "not merged: refused")
    assert delta.operations == (ONE, TWO)
    assert [(f.text, f.fate, f.into, f.because) for f in delta.fates] == [
        ("one", "kept", 0, "not merged: refused"),
        ("two", "kept", 1, "not merged: refused"),
    ]


def test_pieces_side_by_side_keep_their_fates_in_the_places_that_they_were_cut_from() -> None:
    aside = SetAside(what="x", reason="y")
    first = Delta(operations=(THREE,), fates=(fate("two", "dropped", None, "no"), fate("three")), set_aside=(aside,))
    whole = side_by_side([((1, 2), first), ((0,), untouched([ONE]))])
    assert whole.operations == (THREE, ONE)
    assert [(f.text, f.into) for f in whole.fates] == [("one", 1), ("two", None), ("three", 0)]
    assert whole.set_aside == (aside,)


def test_a_piece_without_a_fate_for_each_operation_is_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        side_by_side([((0, 1), untouched([ONE]))])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (fate("one"), fate("one"), ("kept", "", 0)),
        (fate("one"), fate("one", because="not merged: x"), ("kept", "not merged: x", 0)),
        (fate("one", because="not merged: x"), fate("one"), ("kept", "not merged: x", 0)),
        (fate("other"), fate("one"), ("kept", "as: one", 0)),
        (fate("one"), fate("one", "merged"), ("merged", "into: one", 0)),
        (fate("other", "merged"), fate("x"), ("merged", "into: one", 0)),
        (fate("one", "merged"), fate("one", "dropped", None, "too general"), ("dropped", "too general", None)),
        (fate("one", "dropped", None, "gone"), fate("one"), ("dropped", "gone", None)),
    ],
)
def test_two_steps_are_one_fate(before: OperationFate, after: OperationFate, expected: tuple[Any, ...]) -> None:
    (made,) = followed([before], Delta(operations=(ONE,), fates=(after,)))
    assert (made.fate, made.because, made.into) == expected
    assert made.text == before.text


@given(st.lists(st.sampled_from(["kept", "merged", "dropped"]), max_size=8), st.randoms())
def test_every_operation_keeps_exactly_one_fate_through_any_step(words: list[Any], chance: Any) -> None:
    start = untouched([add(f"text {n}", "t1") for n in range(len(words))])
    left = [at for at, word in enumerate(words) if word != "dropped"]
    fates = [fate(f"text {at}", word, left.index(at) if word != "dropped" else None) for at, word in enumerate(words)]
    step = Delta(operations=tuple(start.operations[at] for at in left), fates=tuple(fates))
    made = followed(start.fates, step)
    assert [f.text for f in made] == [f"text {n}" for n in range(len(words))]
    assert [f.fate for f in made] == words
