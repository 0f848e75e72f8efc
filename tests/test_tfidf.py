"""Texts as vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.tfidf import pieces, vectors

TEXTS = st.lists(st.text(max_size=40), max_size=6)


def cosines(*texts: str) -> np.ndarray:
    rows = vectors(texts)
    return np.asarray((rows @ rows.T).toarray())


def test_pieces_are_three_characters_of_the_words_in_lower_case_with_their_ends() -> None:
    assert list(pieces("Ab  CD")) == [" ab", "ab ", "b c", " cd", "cd "]
    assert list(pieces("")) == list(pieces(" \n"))


@given(TEXTS)
def test_each_text_is_a_row_of_length_one(texts: list[str]) -> None:
    rows = vectors(texts)
    assert rows.shape[0] == len(texts)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel()) if texts else np.zeros(0)
    for text, length in zip(texts, lengths, strict=True):
        assert length == pytest.approx(1.0 if list(pieces(text)) else 0.0, abs=1e-5)


def test_weights_are_one_plus_the_logarithm_of_count_and_rarity() -> None:
    # " a " is in both texts, the others in one: 1 + ln(7/7) and 1 + ln(7/6); counts of 1.
    common, rare = 1.0, 1 + math.log(7 / 6)
    shared = {" a "}
    one, two = set(pieces("a b")) - shared, set(pieces("a")) - shared
    assert two == set()
    expected = common / math.sqrt(common**2 + len(one) * rare**2)
    assert cosines("a b", "a")[0, 1] == pytest.approx(expected, abs=1e-6)


def test_the_case_and_the_spaces_do_not_count_and_the_order_of_words_hardly() -> None:
    assert cosines("Round  the SUM", "round the sum")[0, 1] == pytest.approx(1.0)
    assert cosines("round the sum last", "last round the sum")[0, 1] > 0.7
    assert cosines("abcdef", "uvwxyz")[0, 1] == 0.0


def test_what_most_texts_share_weighs_less_than_what_few_do() -> None:
    many = [f"For the desk in {city}, add a fee." for city in ("Ghent", "Lagos", "Quito", "Osaka", "Perth", "Tunis")]
    alone = cosines(*many[:2])[0, 1]
    assert cosines(*many)[0, 1] < alone


def test_no_text_is_no_row() -> None:
    assert vectors([]).shape == (0, 0)
