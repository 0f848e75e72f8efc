"""What the litellm adapter makes of an answer: text, finish, tokens, price, refusal."""

from __future__ import annotations

from typing import Any

import pytest
from fake_provider import FakeProvider, answer, failure
from litellm_calls import EMPTY, MARKS, complete, openai

from combee_core.answers import read_answer
from combee_core.calls import Completion, Usage
from combee_core.errors import AnswerEmpty, AnswerTruncated, ModelRefused

pytestmark = MARKS


def test_a_completion_carries_text_finish_tokens_and_the_name_that_answered() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    with FakeProvider([answer(EMPTY, usage=usage, model="simulated/desk")]) as provider:
        completion = complete(openai(provider))
    assert completion == Completion(
        text=EMPTY,
        finish="stop",
        usage=Usage(input_tokens=100, output_tokens=7, cached_tokens=60, cost=0.0),
        model="simulated/desk",
    )


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}])
def test_usage_that_is_absent_or_zero_is_unknown(usage: dict[str, Any] | None) -> None:
    with FakeProvider([answer(EMPTY, usage=usage, model="gpt-4o")]) as provider:
        assert complete(openai(provider, "gpt-4o")).usage == Usage()


def test_a_known_price_becomes_a_cost() -> None:
    with FakeProvider([answer(EMPTY, model="gpt-4o")]) as provider:
        cost = complete(openai(provider, "gpt-4o")).usage.cost
    assert cost is not None
    assert cost > 0


def test_an_unknown_price_is_unknown_and_the_answer_good() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        completion = complete(openai(provider))
    assert completion.text == EMPTY
    assert completion.usage.cost is None
    assert completion.usage.output_tokens == 7


def test_a_refusal_is_one_call_and_a_refusal() -> None:
    with FakeProvider([answer(None, refusal="I cannot help with that")]) as provider:
        completion = complete(openai(provider))
        assert provider.calls == 1
    with pytest.raises(ModelRefused, match="the model refused"):
        read_answer(completion)


def test_a_filtered_answer_is_a_refusal() -> None:
    with FakeProvider([answer(None, finish="content_filter")]) as provider:
        completion = complete(openai(provider))
    with pytest.raises(ModelRefused, match="content_filter"):
        read_answer(completion)


@pytest.mark.parametrize("content", ["", None])
def test_an_answer_in_the_reasoning_field_is_seen_and_not_used_unasked(content: str | None) -> None:
    with FakeProvider([answer(content, reasoning_content=EMPTY)]) as provider:
        completion = complete(openai(provider))
    with pytest.raises(AnswerEmpty, match="reasoning"):
        read_answer(completion)
    assert read_answer(completion, use_reasoning=True) == {"operations": []}


def test_a_cut_answer_is_a_truncation() -> None:
    with FakeProvider([answer('{"operations": [{"type": "A', finish="length")]) as provider:
        completion = complete(openai(provider))
    with pytest.raises(AnswerTruncated, match="token limit of 7"):
        read_answer(completion)


@pytest.mark.parametrize("content", ["", None])
def test_a_budget_spent_on_reasoning_is_a_truncation(content: str | None) -> None:
    with FakeProvider([answer(content, finish="length", reasoning_content="hm")]) as provider:
        completion = complete(openai(provider))
    with pytest.raises(AnswerTruncated, match="spent on reasoning"):
        read_answer(completion)


def test_a_budget_spent_on_reasoning_and_reported_as_a_bad_request_is_a_truncation_too() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    with FakeProvider([failure(400, words)]) as provider:
        completion = complete(openai(provider))
        assert provider.calls == 1
    with pytest.raises(AnswerTruncated):
        read_answer(completion)


def test_a_think_block_in_the_content_is_no_part_of_the_answer() -> None:
    text = f'<think>{{"operations": [1]}}?</think>{EMPTY}'
    with FakeProvider([answer(text)]) as provider:
        assert read_answer(complete(openai(provider))) == {"operations": []}
