"""Token counts: exact where they can be, else estimates, and never from the network."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import tiktoken
from asking import client, question, run
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.adapters.tokens import count_tokens
from combee_core.base import estimate
from combee_core.errors import ModelTooLarge
from combee_core.testing import ScriptedModel

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
    assert count_tokens("", "openai/gpt-4o") == 0


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o", "azure/gpt-4o"])
def test_a_model_with_its_own_tokenizer_at_hand_is_counted_exactly(model: str) -> None:
    count = count_tokens(TEXT, model)
    assert count == len(tiktoken.encoding_for_model("gpt-4o").encode(TEXT)) != estimate(TEXT)
    assert LitellmModel(model).count(TEXT) == count


@pytest.mark.parametrize("model", UNKNOWN)
def test_an_unknown_model_is_estimated(model: str) -> None:
    assert count_tokens(TEXT, model) == estimate(TEXT)


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "mistral/mistral-large-latest"])
def test_a_known_model_without_its_tokenizer_is_counted_with_a_stand_in(model: str) -> None:
    assert 0 < count_tokens(TEXT, model) < len(TEXT)


@pytest.mark.parametrize("text", ["<|endoftext|>", "a\ud800b", "\x00", "你好 ☕ naïve"])
@pytest.mark.parametrize("model", ["openai/gpt-4o", "openai/house-model"])
def test_odd_texts_are_counted_too(text: str, model: str) -> None:
    assert count_tokens(text, model) > 0


class Watched(ScriptedModel):
    """Counts characters, and notes what it is asked for and on which thread."""

    def __init__(self, context_tokens: int | None = None) -> None:
        super().__init__(lambda _: {"value": 42}, context_tokens=context_tokens)
        self.seen: list[str] = []

    @property
    def context_tokens(self) -> int | None:
        self._note("limit")
        return super().context_tokens

    def count(self, text: str) -> int:
        self._note("size")
        return len(text)

    def _note(self, what: str) -> None:
        self.seen.append(what if threading.current_thread() is not threading.main_thread() else f"{what} on the loop")


def test_a_client_looks_up_the_limit_once_and_counts_off_the_loop() -> None:
    model = Watched(context_tokens=999)
    asking = client(model)
    assert run(asking.ask(question("t1", text="x" * 99), "run")).value == 42
    with pytest.raises(ModelTooLarge, match="about 1000 tokens, more than the 999"):
        run(asking.ask(question("t2", text="x" * 1000), "run"))
    assert model.seen == ["limit", "size"], "a text of fewer bytes than the limit has tokens is not counted"


def test_without_a_limit_nothing_is_counted() -> None:
    model = Watched()
    assert run(client(model).ask(question(text="x" * 9999), "run")).value == 42
    assert model.seen == ["limit"]


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
        f"for model in {models!r}: assert count_tokens('some words', model) > 0\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_without_litellm_every_count_is_an_estimate() -> None:
    script = (
        "import sys\n"
        "sys.modules['litellm'] = None\n"
        "from combee_core.adapters.tokens import count_tokens\n"
        "print(count_tokens('12345', 'openai/gpt-4o'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"
