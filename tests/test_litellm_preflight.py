"""The litellm adapter's preflight: what is wrong is found before the first call."""

from __future__ import annotations

import pytest
from fake_provider import FakeProvider, Received, Reply, answer, failure, hang
from litellm_calls import MARKS, anthropic, complete, openai, preflight
from ports import free_port

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.errors import ModelFault, ModelUnusable

pytestmark = MARKS


def test_the_input_limit_is_known_where_litellm_knows_the_model() -> None:
    assert LitellmModel("openai/gpt-4o").context_tokens == 128_000
    for model in ("openai/house-model", "gpt4o-typo"):
        assert LitellmModel(model).context_tokens is None


def test_a_model_string_that_litellm_cannot_place_is_unusable_and_says_what_to_write() -> None:
    for ask in (complete, preflight):
        with pytest.raises(ModelUnusable, match="gpt4o-typo: litellm knows no such model; write provider/na"):
            ask(LitellmModel("gpt4o-typo"))
    with pytest.raises(ModelUnusable, match="for example openai/qwen15"):
        preflight(LitellmModel("qwen15", "http://127.0.0.1:9/v1"))


def test_a_preflight_of_a_listed_model_costs_no_completion() -> None:
    with FakeProvider([], models=["other", "served"]) as provider:
        preflight(openai(provider))
        assert [(r.method, r.path) for r in provider.requests] == [("GET", "/v1/models")]


def test_a_preflight_sends_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    with FakeProvider([]) as provider:
        preflight(openai(provider))
        headers = {name.lower(): value for name, value in provider.requests[0].headers.items()}
    assert headers["authorization"] == "Bearer from-the-environment"


def test_a_wrong_name_is_found_before_the_first_call_and_the_right_ones_shown() -> None:
    with FakeProvider([failure(404, "no such model")], models=list("abcdefg")) as provider:
        with pytest.raises(ModelUnusable, match=r"no model 'typo'; it has: a, b, c, d, e, … .*no such model"):
            preflight(openai(provider, "typo"))
        assert provider.calls == 1


def test_a_name_that_a_gateway_serves_without_listing_it_is_right() -> None:
    with FakeProvider([answer("yes", finish="length")], models=["listed"]) as provider:
        preflight(openai(provider, "alias"))
        assert provider.calls == 1


def test_a_name_that_the_server_lists_with_latest_is_right() -> None:
    with FakeProvider([], models=["llama3:latest"]) as provider:
        preflight(openai(provider, "llama3"))
        assert provider.calls == 0


@pytest.mark.parametrize("models", [None, []])
def test_a_server_without_a_list_is_asked_for_one_token(models: list[str] | None) -> None:
    with FakeProvider([answer("yes", finish="length")], models=models) as provider:
        preflight(openai(provider))
        assert [chat.body["max_tokens"] for chat in provider.chats] == [1]


def test_a_provider_of_another_shape_is_asked_for_one_token() -> None:
    with FakeProvider([failure(404, "model: claude-typo", kind="not_found_error")]) as provider:
        with pytest.raises(ModelUnusable, match="claude-typo"):
            preflight(anthropic(provider))
        assert provider.calls == len(provider.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_found_by_the_preflight_in_one_request(status: int) -> None:
    def refuse(request: Received) -> Reply:
        return failure(status, "bad key")

    with FakeProvider(refuse, models=None) as provider:
        with pytest.raises(ModelUnusable, match="set OPENAI_API_KEY"):
            preflight(openai(provider))
        assert provider.calls == 1
    with FakeProvider([], models=failure(status, "bad key")) as provider:
        with pytest.raises(ModelUnusable, match="set OPENAI_API_KEY"):
            preflight(openai(provider))
        assert len(provider.requests) == 1


def test_a_missing_key_is_found_without_a_server() -> None:
    for model, variable in (("openai/gpt-4o", "OPENAI_API_KEY"), ("anthropic/claude-x", "ANTHROPIC_API_KEY")):
        with pytest.raises(ModelUnusable, match=f"set {variable}"):
            preflight(LitellmModel(model))


def test_a_preflight_names_the_address_where_nothing_listens() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    for model in ("openai/served", "anthropic/claude-sonnet-4-5"):
        with pytest.raises(ModelUnusable, match=f"nothing listens at {address}"):
            preflight(LitellmModel(model, address))


def test_a_preflight_does_not_wait_for_a_server_that_hangs() -> None:
    with FakeProvider([hang()], models=hang()) as provider:
        with pytest.raises(ModelUnusable, match=r"within 0\.5 s"):
            preflight(openai(provider), timeout=0.5)
        with pytest.raises(ModelUnusable, match=r"within 0\.5 s"):
            preflight(anthropic(provider), timeout=0.5)


def test_an_address_that_is_none_is_unusable() -> None:
    with pytest.raises(ModelUnusable, match="localhost:8000"):
        preflight(LitellmModel("openai/served", "localhost:8000"))


def test_a_busy_provider_passes_the_preflight_and_a_broken_one_does_not() -> None:
    with FakeProvider([failure(429, "slow")], models=None) as provider:
        preflight(openai(provider))
    with FakeProvider([failure(429, "slow")], models=failure(429, "slow")) as provider:
        preflight(openai(provider))
    with FakeProvider([failure(500, "boom")], models=None) as provider, pytest.raises(ModelFault):
        preflight(openai(provider))
