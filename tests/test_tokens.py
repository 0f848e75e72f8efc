"""Token counts: exact where they can be, else marked as estimates, and never from the network."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.tokens import count_tokens
from combee_core.base import estimate

TEXT = "For ROE answer 20, not 0.2: a percentage without its sign. " * 5
UNKNOWN = ["openai/house-model", "gpt4o-typo", "meta-llama/Llama-3-8b", "hosted_vllm/llama-3-70b", ""]


@given(st.text())
def test_an_estimate_is_a_quarter_of_the_bytes_rounded_up(text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    assert 4 * estimate(text) - 4 < size <= 4 * estimate(text)


@given(st.text(), st.text())
def test_an_estimate_never_shrinks_as_a_text_grows(text: str, more: str) -> None:
    assert estimate(text + more) >= estimate(text)


def test_nothing_counts_nothing() -> None:
    assert estimate("") == 0
    for empty in (None, ""):
        assert count_tokens(empty, "openai/gpt-4o") == (0, True)


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o", "azure/gpt-4o"])
def test_a_model_with_its_own_tokenizer_at_hand_is_counted_exactly(model: str) -> None:
    count, exact = count_tokens(TEXT, model)
    assert exact
    assert count != estimate(TEXT)
    assert abs(count - count_tokens(TEXT * 2, model)[0] / 2) < 2


@pytest.mark.parametrize("model", UNKNOWN)
def test_an_unknown_model_is_estimated_and_says_so(model: str) -> None:
    assert count_tokens(TEXT, model) == (estimate(TEXT), False)


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "mistral/mistral-large-latest"])
def test_a_known_model_with_a_stand_in_tokenizer_is_an_estimate(model: str) -> None:
    count, exact = count_tokens(TEXT, model)
    assert count > 0
    assert not exact


@pytest.mark.parametrize("text", ["<|endoftext|>", "a\ud800b", "\x00", "你好 ☕ naïve"])
@pytest.mark.parametrize("model", ["openai/gpt-4o", "openai/house-model"])
def test_odd_texts_are_counted_too(text: str, model: str) -> None:
    assert count_tokens(text, model)[0] > 0


def test_counting_asks_no_network_whatever_the_model() -> None:
    known = ["openai/gpt-4o", "groq/llama-3.1-8b-instant", "cerebras/llama-3.1-8b", "cohere/command-r"]
    more = ["anyscale/meta-llama/Llama-2-7b-chat-hf", "deepseek/deepseek-chat", "anthropic/claude-sonnet-4-5"]
    models = [*UNKNOWN, *known, *more]
    script = (
        "import sys\n"
        "def refuse(event, details):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'):\n"
        "        print('asked the network', event, details); sys.exit(9)\n"
        "sys.addaudithook(refuse)\n"
        "from combee_core.adapters.tokens import count_tokens\n"
        f"for model in {models!r}: assert count_tokens('some words', model)[0] > 0\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_simulated_model_is_counted_without_loading_litellm() -> None:
    script = (
        "import sys\n"
        "from combee_core.adapters.tokens import count_tokens\n"
        "assert count_tokens('12345', 'simulated/desk') == (2, False)\n"
        "print('litellm' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_litellm_every_count_is_an_estimate() -> None:
    script = (
        "import sys\n"
        "sys.modules['litellm'] = None\n"
        "from combee_core.adapters.tokens import count_tokens\n"
        "print(count_tokens('12345', 'openai/gpt-4o'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2, False)"
