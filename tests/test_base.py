"""What every module uses on texts: whole characters, clipping, the stand-in's names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.base import clip, is_simulated, whole

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF))


@given(ANY_TEXT)
def test_a_whole_text_can_be_stored_and_stays_whole(text: str) -> None:
    assert whole(text).encode().decode() == whole(text) == whole(whole(text))


@given(st.text())
def test_a_text_without_halves_is_as_it_was(text: str) -> None:
    assert whole(text) == text


def test_halves_that_belong_together_are_joined_and_others_are_replaced() -> None:
    assert whole("\ud83d\ude82 a\ud83db\ude82") == "\U0001f682 a\ufffdb\ufffd"
    assert whole("\ufeffmarked") == "\ufeffmarked"


@given(st.text(), st.integers(1, 50))
def test_a_clipped_text_is_never_longer_and_shows_that_it_was_cut(text: str, most: int) -> None:
    short = clip(text, most)
    assert len(short) <= most
    assert short == text if len(text) <= most else text.startswith(short.removesuffix("…"))


def test_the_last_character_that_fits_is_not_cut_off() -> None:
    assert clip("abcd", 4) == "abcd"
    assert clip("abcde", 4) == "abc…"


@pytest.mark.parametrize("name", ["openai/simulated/overload", "simulated", "gpt-4o", ""])
def test_only_names_that_begin_with_the_stand_ins_are_simulated(name: str) -> None:
    assert is_simulated("simulated/overload")
    assert not is_simulated(name)
