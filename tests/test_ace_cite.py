"""What a text rests on: numbers that the model named, and what code makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.learners.ace.cite import Citation, Evidence, cite, states

ROE = "For ROE answer in percent: 20, not 0.2."
OTHERS = ("Round to two decimals at the end.", "Use page_limit 20 with show_songs.", "Dates are written DD/MM/YYYY.")


def shown(*words: str) -> list[Evidence[str]]:
    return [Evidence(f"t{n}", said) for n, said in enumerate(words, start=1)]


def test_what_was_named_is_cited_as_named() -> None:
    assert cite("anything", ["t1"], shown(ROE, *OTHERS)) == Citation(("t1",), False)
    assert cite("anything", ["t3", "t1", "t3"], shown(ROE, *OTHERS)) == Citation(("t1", "t3"), False)


def test_three_traces_may_be_claimed_as_a_whole() -> None:
    assert cite("Be careful.", ["t1", "t2", "t3"], shown(ROE, *OTHERS[:2])) == Citation(("t1", "t2", "t3"), False)


def test_a_whole_group_of_four_is_reduced_to_those_that_state_the_specific() -> None:
    found = cite(ROE, ["t1", "t2", "t3", "t4"], shown(OTHERS[0], ROE, *OTHERS[1:]))
    assert found == Citation(("t2",), True)


def test_a_whole_group_stands_where_each_one_states_the_specific() -> None:
    group = shown(ROE, f"{ROE} The desk wants percent.", ROE.upper(), "For ROE, answer in percent: 20, not 0.2")
    assert cite(ROE, [piece.key for piece in group], group) == Citation(("t1", "t2", "t3", "t4"), False)


def test_where_none_states_it_the_most_similar_are_taken() -> None:
    found = cite("For ROE answer in basis points.", ["t1", "t2", "t3", "t4"], shown(*OTHERS, ROE))
    assert found == Citation(("t4",), True)


def test_copies_of_one_trace_count_once() -> None:
    copies = [Evidence("t1", ROE), Evidence("t2", OTHERS[0]), Evidence("t1", ROE), Evidence("t2", OTHERS[0])]
    assert cite("Be careful.", ["t1", "t2", "t1", "t2"], copies) == Citation(("t1", "t2"), False)
    assert cite(ROE, [], copies * 3) == Citation(("t1",), True)


def test_where_nothing_was_named_the_most_similar_are_marked_as_inferred() -> None:
    assert cite("For ROE answer in percent.", [], shown(*OTHERS, ROE)) == Citation(("t4",), True)
    assert cite(ROE, [], shown(ROE, ROE, ROE, ROE, ROE)) == Citation(("t1", "t2", "t3"), True)
    assert cite(ROE, [], []) == Citation((), True)


def test_a_text_about_another_number_does_not_state_the_specific() -> None:
    assert states("For ROE answer in percent: 20, not 0.2.", "For ROE answer in percent: 20.")
    assert not states("For ROE answer in percent: 30, not 0.3.", "For ROE answer in percent: 20, not 0.2.")
    assert not states("anything", "")


def test_of_many_similar_ones_the_three_closest_are_taken() -> None:
    group = shown(ROE + "!!!", ROE + "!!", ROE, ROE + "!!!!", ROE + "!")
    assert cite(ROE, [], group) == Citation(("t2", "t3", "t5"), True)


@pytest.mark.parametrize("size", range(4, 9))
def test_a_platitude_never_cites_a_whole_group(size: int) -> None:
    group = [Evidence(f"t{n}", f"The fee on item {n} is {n * 7}.") for n in range(size)]
    found = cite("Pay attention to the details of each case.", [piece.key for piece in group], group)
    assert found.inferred
    assert 1 <= len(found.keys) <= 3


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([ROE, *OTHERS])), min_size=1, max_size=10), st.data())
def test_only_what_was_shown_is_cited_once_each_in_order(pairs: list[tuple[int, str]], data: st.DataObject) -> None:
    group: Sequence[Evidence[int]] = [Evidence(key, words) for key, words in pairs]
    everyone = list(dict.fromkeys(key for key, _ in pairs))
    named = data.draw(st.lists(st.sampled_from(everyone)))
    found = cite(ROE, named, group)
    assert list(found.keys) == [key for key in everyone if key in found.keys]
    assert found.keys
    assert found.inferred or set(found.keys) == set(named)
    if len(found.keys) == len(everyone) >= 4 and named:
        assert {key for key, words in pairs if states(words, ROE)} == set(everyone)
