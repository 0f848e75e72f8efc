"""Provider faults become the leaf that says what can be done about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.classify import Callee, Fault, classify, retry_after
from combee_core.errors import (
    ModelBusy,
    ModelError,
    ModelFault,
    ModelRefused,
    ModelTimeout,
    ModelTooLarge,
    ModelUnusable,
)

NOW = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)
CALLEE = Callee("openai/gpt-4o", "http://127.0.0.1:9/v1", "OPENAI_API_KEY")
NAMES = (
    "RateLimitError", "APIError", "InternalServerError", "BadRequestError", "APIConnectionError",
)  # fmt: skip


def sort(status: int | None, body: str = "", *names: str, headers: dict[str, str] | None = None) -> ModelError:
    return classify(Fault(status, body, headers or {}, names), CALLEE, NOW)


@given(st.none() | st.integers(100, 599), st.text(max_size=80), st.lists(st.sampled_from(NAMES), max_size=3))
def test_every_fault_gets_a_leaf_with_a_message_of_one_line(status: int | None, body: str, names: list[str]) -> None:
    error = sort(status, body, *names)
    assert type(error) in (ModelBusy, ModelFault, ModelTooLarge, ModelRefused, ModelUnusable)
    assert str(error).startswith("openai/gpt-4o: ")
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_class_alone_never_decides(name: str) -> None:
    assert isinstance(sort(429, "slow down", name), ModelBusy)
    assert isinstance(sort(413, "too big", name), ModelTooLarge)
    assert isinstance(sort(401, "bad key", name), ModelUnusable)
    assert isinstance(sort(503, "down", name), ModelFault)


def test_the_real_class_status_and_words_survive_in_the_message() -> None:
    body = json.dumps({"error": {"message": "Rate limit\nreached", "type": "tokens"}})
    assert str(sort(429, body, "RateLimitError")) == ("openai/gpt-4o: busy (RateLimitError 429: Rate limit reached)")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (529, "Overloaded"),
        (500, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'),
        (503, "The model is overloaded. Please try again later."),
        (429, "Rate limit reached, see the billing page for limits, try again in 6.5s"),
    ],
)
def test_an_overloaded_provider_is_busy_by_status_and_words(status: int, body: str) -> None:
    assert isinstance(sort(status, body, "InternalServerError"), ModelBusy)


def test_the_word_overloaded_in_a_bad_request_is_no_reason_to_wait() -> None:
    assert isinstance(sort(400, "the field 'overloaded' is unknown"), ModelUnusable)


def test_unavailable_with_a_date_to_come_back_is_busy() -> None:
    error = sort(503, "maintenance", headers={"Retry-After": "30"})
    assert isinstance(error, ModelBusy)
    assert error.retry_after == 30.0
    assert isinstance(sort(503, "maintenance"), ModelFault)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"Retry-After": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 10:01:30 GMT"}, "", 90.0),
        ({"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT"}, "", 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 10:01:30"}, "", 90.0),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "inf"}, "", None),
        ({}, "Please try again in 350ms.", 0.35),
        ({}, 'RESOURCE_EXHAUSTED "retryDelay": "37s"', 37.0),
        ({}, "Please retry in 1.25 s", 1.25),
        ({}, "", None),
    ],
)
def test_the_wait_is_read_wherever_the_provider_puts_it(
    headers: dict[str, str], body: str, seconds: float | None
) -> None:
    assert retry_after(Fault(429, body, headers), NOW) == seconds
    error = sort(429, body, headers=headers)
    assert isinstance(error, ModelBusy)
    assert error.retry_after == seconds


@given(st.text(max_size=40))
def test_no_retry_header_breaks_the_sorting(value: str) -> None:
    wait = retry_after(Fault(429, "", {"retry-after": value, "retry-after-ms": value}), NOW)
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}',
        "You exceeded your current quota, please check your plan and billing details",
        "billing_hard_limit_reached",
    ],
)
def test_no_quota_left_stops_the_run(body: str) -> None:
    error = sort(429, body)
    assert isinstance(error, ModelUnusable)
    assert "no quota left" in str(error)


def test_a_quota_that_comes_back_within_the_minute_is_only_busy() -> None:
    body = 'You exceeded your current quota, check your plan and billing details. "retryDelay": "37s"'
    assert isinstance(sort(429, body), ModelBusy)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, "request too large"),
        (413, ""),
        (400, '{"error": {"type": "request_too_large", "message": "too big"}}'),
        (400, "Prompt contains 9000 tokens, too large for model with 8192 maximum context length"),
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000"),
        (400, '{"error": {"code": "context_length_exceeded"}}'),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "The input token count (1048600) exceeds the maximum number of tokens allowed"),
        (400, "Input is too long for requested model."),
        (400, "Please reduce the length of the messages or completion."),
        (429, "Request too large for gpt-4o: Limit 10000, Requested 20000"),
        (500, "exceed_context_size_error"),
    ],
)
def test_a_request_that_is_too_large_is_recognised_in_any_words(status: int, body: str) -> None:
    assert isinstance(sort(status, body, "BadRequestError"), ModelTooLarge)


@pytest.mark.parametrize(
    "body",
    [
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
        "Invalid schema for response_format",
        "Unknown parameter: 'context'",
        "",
    ],
)
def test_other_bad_requests_stop_and_are_quoted(body: str) -> None:
    error = sort(400, body, "BadRequestError")
    assert isinstance(error, ModelUnusable)
    assert body in str(error)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_and_names_the_variable(status: int) -> None:
    error = sort(status, "Incorrect API key", "AuthenticationError")
    assert isinstance(error, ModelUnusable)
    assert "set OPENAI_API_KEY" in str(error)


def test_a_missing_key_stops_even_as_an_internal_error() -> None:
    error = sort(500, "Missing credentials. Please pass an `api_key`", "InternalServerError")
    assert isinstance(error, ModelUnusable)
    assert "set OPENAI_API_KEY" in str(error)


def test_an_unknown_model_stops_and_names_the_address() -> None:
    error = sort(404, "The model `gtp-4o` does not exist", "NotFoundError")
    assert isinstance(error, ModelUnusable)
    assert CALLEE.address in str(error)
    assert "gtp-4o" in str(error)


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, '{"error": {"code": "content_policy_violation"}}', "BadRequestError"),
        (400, "triggering Azure OpenAI's content management policy", "BadRequestError"),
        (403, "requires moderation and your input was flagged", "APIError"),
        (400, "no", "ContentPolicyViolationError"),
    ],
)
def test_a_filtered_request_is_refused(status: int, body: str, name: str) -> None:
    assert isinstance(sort(status, body, name), ModelRefused)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 409, 425, None, 200])
def test_passing_faults_may_be_asked_again(status: int | None) -> None:
    error = sort(status, "boom")
    assert isinstance(error, ModelFault)
    assert error.retryable


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ConnectionRefusedError", "nothing listens at http://127.0.0.1:9/v1"),
        ("ClientConnectorDNSError", "host name of http://127.0.0.1:9/v1 is not known"),
        ("ReadTimeout", "within 2.5 s"),
        ("ClientPayloadError", "dropped the connection in mid-answer"),
        ("ServerDisconnectedError", "dropped the connection"),
    ],
)
def test_a_fault_of_the_connection_says_which(name: str, words: str) -> None:
    fault = Fault(500, "Connection error.", {}, ("InternalServerError", "OpenAIError", name), 2.5)
    error = classify(fault, CALLEE, NOW)
    assert isinstance(error, ModelFault)
    assert isinstance(error, ModelTimeout) == (name == "ReadTimeout")
    assert words in str(error)


def test_keys_in_a_provider_s_words_are_not_repeated() -> None:
    told = str(sort(401, "Incorrect key sk-abcdef1234567890 or Bearer abcdef123456789"))
    assert "abcdef123" not in told
    assert "Incorrect key" in told


def test_long_bodies_are_shown_by_their_beginning() -> None:
    assert len(str(sort(500, "x" * 100_000))) < 500
