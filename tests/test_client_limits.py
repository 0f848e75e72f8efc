"""The client: refused, cut and too large."""

from __future__ import annotations

import pytest
from asking import CUT, GOOD, REFUSAL, ask, client, memory, question, with_retries

from combee_core.calls import Completion
from combee_core.errors import AnswerTruncated, ModelRefused, ModelTooLarge
from combee_core.ledger import Spend
from combee_core.testing import ScriptedModel

# refusals


def test_a_refusal_costs_one_call_an_invocation_and_may_be_over_in_the_next() -> None:
    store, model = memory(), ScriptedModel([REFUSAL, GOOD])
    first = client(model, store)
    for _ in range(2):
        with pytest.raises(ModelRefused, match=r"scripted/model: the model refused; .*rejected-1") as refused:
            ask(first)
        assert not refused.value.retryable
    assert len(model.requests) == 1
    assert ask(client(model, store)).value
    assert len(model.requests) == 2


def test_a_final_truncation_may_be_over_in_the_next_invocation_too() -> None:
    store, model = memory(), ScriptedModel([CUT, CUT, GOOD])
    first = client(model, store)
    for _ in range(3):
        with pytest.raises(AnswerTruncated):
            ask(first)
    assert len(model.requests) == 2
    assert ask(client(model, store)).value


def test_a_filtered_answer_is_a_refusal() -> None:
    with pytest.raises(ModelRefused, match="content_filter"):
        ask(client(ScriptedModel([Completion(text=None, finish="content_filter")])))


def test_a_refusal_by_the_provider_itself_stays_a_refusal_and_has_no_receipt() -> None:
    store, model = memory(), ScriptedModel([ModelRefused("400: blocked by policy"), GOOD])
    asking = client(model, store)
    for _ in range(2):
        with pytest.raises(ModelRefused, match="blocked by policy"):
            ask(asking)
    assert len(model.requests) == 1
    assert asking.ledger.total("run") == Spend()


def test_a_refusal_with_a_broken_character_is_recorded() -> None:
    store, model = memory(), ScriptedModel([Completion(text=None, refusal="no \ud83d")])
    asking = client(model, store)
    for _ in range(2):
        with pytest.raises(ModelRefused):
            ask(asking)
    assert len(model.requests) == 1


# truncation


def test_a_cut_answer_is_asked_for_once_more_with_twice_the_room_and_then_is_final() -> None:
    model = ScriptedModel([CUT, CUT, GOOD])
    asking = client(model, max_output_tokens=100)
    with pytest.raises(AnswerTruncated, match="token limit") as first:
        ask(asking)
    with pytest.raises(AnswerTruncated, match="token limit") as second:
        ask(asking)
    assert (first.value.retryable, second.value.retryable) == (True, False)
    assert [r.max_output_tokens for r in model.requests] == [100, 200]
    with pytest.raises(AnswerTruncated) as third:
        ask(asking)
    assert not third.value.retryable
    assert len(model.requests) == 2


def test_the_wider_retry_may_succeed() -> None:
    model = ScriptedModel([CUT, GOOD])
    assert with_retries(client(model), 2).value == 42
    assert len(model.requests) == 2


def test_where_no_retry_is_allowed_the_first_cut_is_final() -> None:
    with pytest.raises(AnswerTruncated) as cut:
        ask(client(ScriptedModel([CUT]), retries=0))
    assert not cut.value.retryable


def test_a_wide_question_has_twice_the_room_at_once() -> None:
    model = ScriptedModel([CUT])
    with pytest.raises(AnswerTruncated) as cut:
        ask(client(model, max_output_tokens=100), wide=True)
    assert not cut.value.retryable
    assert model.requests[0].max_output_tokens == 200


def test_a_half_answer_is_never_mended_into_a_whole_one() -> None:
    whole_looking = Completion(text='{"value": 4}', finish="length")
    with pytest.raises(AnswerTruncated):
        ask(client(ScriptedModel([whole_looking])))


# size


def test_a_prompt_that_is_too_large_is_not_sent() -> None:
    model = ScriptedModel([GOOD])
    with pytest.raises(ModelTooLarge, match=r"t1: about 250 tokens, more than the 100") as large:
        ask(client(model, context_tokens=100), question(text="x" * 1000))
    assert not large.value.retryable
    assert model.requests == []


def test_the_models_own_limit_counts_where_none_is_set() -> None:
    model = ScriptedModel([GOOD], context_tokens=100)
    with pytest.raises(ModelTooLarge):
        ask(client(model), question(text="x" * 1000))
    assert ask(client(model, context_tokens=500), question(text="x" * 1000)).value == 42


def test_a_prompt_that_just_fits_is_sent() -> None:
    assert ask(client(ScriptedModel([GOOD]), context_tokens=100), question(text="x" * 400)).value == 42
