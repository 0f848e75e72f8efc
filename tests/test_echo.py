"""What a provider says, without what it quotes of the prompt."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.classify import Callee, Fault, classify
from combee_core.echo import without_echo

ASKED = "Reflect on this run.\n\nThe customer's account number is 4417-1234-5678-9113, and she is angry."


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Invalid prompt: your prompt was flagged", "Invalid prompt: your prompt was flagged"),
        ("bad text 'account number is 4417-1234-5678-9113'", "bad text …"),
        ("near 4417-1234-5678-9113, column 3", "near … column 3"),
        ('at "customer\'s account number is" of the run', "at … of the run"),
        ("The customer's  account\nnumber is 4417-1234-5678-9113, and she is angry.", "…"),
        ("", ""),
    ],
)
def test_stretches_of_the_prompt_are_left_out(said: str, left: str) -> None:
    assert without_echo(said, ASKED) == left


def test_one_long_word_is_a_quotation_too() -> None:
    assert without_echo("seen: ticket-4417-1234-5678-9113!", "about ticket-4417-1234-5678-9113") == "seen: …"


@given(st.text(max_size=80), st.text(max_size=80))
def test_whatever_is_quoted_no_stretch_of_four_words_is_left(said: str, asked: str) -> None:
    left = without_echo(said, asked).split()
    source = " ".join(asked.split())
    for start in range(len(left) - 3):
        stretch = " ".join(left[start : start + 4])
        assert stretch not in source or "…" in stretch or not stretch.strip("\"'`“”‘’()[]{}<>.,:;!?")


def test_an_error_of_the_provider_quotes_neither_prompt_nor_answer() -> None:
    callee, now = Callee(model="m"), datetime(2026, 11, 30, tzinfo=UTC)
    body = '{"error": {"message": "cannot read: The customer\'s account number is"}}'
    echo = Fault(status=400, body=body, asked=ASKED)
    assert "customer" not in str(classify(echo, callee, now))
    for quoting in ("Unable to get json response, Original Response: ", "Empty or invalid response. Received: "):
        garbled = Fault(status=500, body=f"{quoting}{{'text': 'she is angry'")
        assert "angry" not in str(classify(garbled, callee, now))
        assert quoting[:20] in str(classify(garbled, callee, now))
