"""The similarity of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.similarity import SAME, closeness, profile, similarity

TEXTS = st.text(max_size=60)


@given(TEXTS, TEXTS)
def test_similarity_is_a_symmetric_share(a: str, b: str) -> None:
    value = similarity(a, b)
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(similarity(b, a))


@given(TEXTS)
def test_a_text_is_entirely_like_itself_in_any_case(text: str) -> None:
    assert similarity(text, text) == 1.0
    assert similarity(text, text.lower()) == 1.0


def test_texts_without_a_common_piece_have_nothing_in_common() -> None:
    assert similarity("abcdef", "uvwxyz") == 0.0
    assert similarity("", "abc") == 0.0


def test_the_value_is_the_cosine_of_counts_of_three_letters() -> None:
    # abcd: abc, bcd; abcx: abc, bcx. One of two pieces is shared: 1 / (sqrt 2 · sqrt 2).
    assert similarity("abcd", "ABCX") == pytest.approx(0.5)
    # aaaa: aaa twice; aaab: aaa, aab. 2 · 1 / (2 · sqrt 2).
    assert similarity("aaaa", "aaab") == pytest.approx(2 / (2 * 2**0.5))


def test_a_text_shorter_than_three_letters_is_one_piece() -> None:
    assert profile("ab").counts == {"ab": 1}
    assert profile("").length == 0.0
    assert similarity("ab", "ab") == 1.0
    assert similarity("ab", "ac") == 0.0


def test_a_slightly_different_wording_is_the_same_and_another_fact_is_not() -> None:
    fact = "For ROE answer in percent: 20, not 0.2."
    assert similarity(fact, "For ROE, answer in percent: 20, not 0.2") >= SAME
    assert similarity(fact, "Book the return flight before you cancel the outward one.") < SAME


def test_profiles_may_be_compared_without_counting_again() -> None:
    a, b = "multiply the charge by 1.35", "multiply the fee by 1.35"
    assert closeness(profile(a), profile(b)) == pytest.approx(similarity(a, b))
