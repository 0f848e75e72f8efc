"""Secrets are found by name and by form, and told where they belong; nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.config import RunRequest
from combee_core.leaks import Leak, leaks, looks_secret, variable
from combee_core.run_file import RunFile, keys


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apikey",
        "API_KEY",
        "OPENAI_API_KEY",
        "openai-key",
        "secret",
        "aws_secret_access_key",
        "token",
        "auth_token",
        "password",
        "passwd",
        "db_password",
        "credentials",
        "private_key",
        "bearer-token",
    ],
)
def test_a_name_that_says_secret_is_one_whatever_it_holds(name: str) -> None:
    assert looks_secret(name, "anything")


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "a1" * 12,
        "sk-ant-" + "b2" * 12,
        "AKIA" + "ABCDEFGH1234",
        "hf_" + "c" * 20,
        "gsk_" + "d" * 20,
        "AIza" + "e" * 30,
        "ghp_" + "f" * 30,
        "https://user:word@host/v1",
        "s3://id:word@bucket/x",
    ],
)
def test_a_value_in_the_form_of_a_key_is_one_whatever_it_is_called(value: str) -> None:
    assert looks_secret("model", value)


@pytest.mark.parametrize("path", list(keys()), ids=".".join)
def test_no_setting_of_ours_has_the_name_of_a_secret(path: tuple[str, ...]) -> None:
    assert not looks_secret(path[-1], "words")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_output_tokens", 8192),
        ("context_tokens", 128_000),
        ("api_base", "http://127.0.0.1:8000/v1"),
        ("store", "s3://my-bucket/risk-reports"),
        ("embedding", "openai/text-embedding-3-small"),
        ("playbook", "sk-desk"),
        ("api_base", "http://[::1"),
    ],
)
def test_what_is_no_secret_is_left_alone(name: str, value: Any) -> None:
    assert not looks_secret(name, value)


def test_a_default_request_leaks_nothing() -> None:
    assert not list(leaks(RunRequest().model_dump(mode="json")))
    assert not list(leaks(RunFile().model_dump(mode="json")))


@pytest.mark.parametrize(
    ("name", "value", "model", "belongs"),
    [
        ("api_key", "x", "openai/gpt-4o", "OPENAI_API_KEY"),
        ("api_key", "x", "gpt-4o", "OPENAI_API_KEY"),
        ("api_key", "x", "anthropic/claude-sonnet-4", "ANTHROPIC_API_KEY"),
        ("api_key", "x", "fireworks-ai/model", "FIREWORKS_AI_API_KEY"),
        ("token", "x", "together_ai/model", "TOGETHERAI_API_KEY"),
        ("token", "x", "bedrock/claude", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("MISTRAL_API_KEY", "x", "openai/gpt-4o", "MISTRAL_API_KEY"),
        ("aws_secret_access_key", "x", "openai/gpt-4o", "AWS_SECRET_ACCESS_KEY"),
        ("access_key_id", "x", "openai/gpt-4o", "AWS_ACCESS_KEY_ID"),
        ("id", "AKIA" + "A" * 12, "openai/gpt-4o", "AWS_ACCESS_KEY_ID"),
        ("store", "s3://a:b@c/d", "openai/gpt-4o", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_the_variable_is_the_providers_own(name: str, value: str, model: str, belongs: str) -> None:
    assert variable(name, value, model) == belongs


def test_a_secret_is_found_at_any_depth_and_its_place_is_told() -> None:
    data = {"settings": {"model": {"model": "openai/x", "api_key": "x"}}, "source": {"uris": ["ok", "s3://a:b@c"]}}
    assert list(leaks(data, "openai/x")) == [
        Leak(("settings", "model", "api_key"), "OPENAI_API_KEY"),
        Leak(("source", "uris"), "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_whatever_a_file_holds_can_be_looked_through(value: Any) -> None:
    assert all(leak.path == ("limit",) for leak in leaks({"limit": value}))
