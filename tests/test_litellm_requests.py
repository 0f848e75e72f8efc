"""What the litellm adapter sends, and what it leaves out where a server refuses it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from fake_provider import FakeProvider, Received, Reply, answer, failure
from litellm_calls import EMPTY, FORMAT_REFUSED, MARKS, PROMPT, REQUEST, SCHEMA, complete, openai, run

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.adapters.litellm_wire import as_sent, route_of
from combee_core.adapters.load_litellm import load_litellm
from combee_core.calls import Completion, Message
from combee_core.errors import ModelUnusable

pytestmark = MARKS


def test_the_request_holds_what_was_asked_for() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        complete(openai(provider))
        sent = provider.chats[0].body
    assert sent["model"] == "served"
    assert sent["messages"] == [m.model_dump() for m in PROMPT.messages]
    assert (sent["max_tokens"], sent["temperature"], sent["seed"]) == (64, 0.5, (2**40 + 7) % 2**31)
    schema = sent["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"], schema["schema"]) == ("curate", True, SCHEMA)


def test_a_lone_surrogate_in_a_prompt_is_sent_as_something_that_can_be() -> None:
    prompt = PROMPT.model_copy(update={"messages": (Message(role="user", content="a\ud800b"),)})
    with FakeProvider([answer(EMPTY)]) as provider:
        complete(openai(provider), REQUEST.model_copy(update={"prompt": prompt}))
        assert provider.chats[0].body["messages"][0]["content"] == "a\ufffdb"


def test_the_name_is_the_model_and_its_address_without_credentials() -> None:
    assert LitellmModel("openai/gpt-4o").name == "openai/gpt-4o"
    assert LitellmModel("openai/x", "http://me:secret@host:1/v1/").name == "openai/x@http://host:1/v1"


def test_a_server_without_answer_schemas_is_asked_in_plain_text_from_then_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def reply(request: Received) -> Reply:
        return FORMAT_REFUSED if "response_format" in request.body else answer(EMPTY)

    with FakeProvider(reply) as provider, caplog.at_level(logging.WARNING):
        model = openai(provider)

        async def twice() -> list[Completion]:
            return [await model.complete(REQUEST), await model.complete(REQUEST)]

        assert [one.text for one in run(model, twice)] == [EMPTY, EMPTY]
        assert provider.calls == 3
    told = [record.getMessage() for record in caplog.records if record.name.startswith("combee_core")]
    assert len(told) == 1
    assert "refuses response_format" in told[0]


def test_parallel_first_calls_all_fall_back() -> None:
    def reply(request: Received) -> Reply:
        return FORMAT_REFUSED if "response_format" in request.body else answer(EMPTY)

    with FakeProvider(reply) as provider:
        model = openai(provider)

        async def eight() -> list[Completion]:
            return await asyncio.gather(*(model.complete(REQUEST) for _ in range(8)))

        assert {one.text for one in run(model, eight)} == {EMPTY}
        assert provider.calls <= 16


def test_seed_and_temperature_are_left_out_where_they_are_refused() -> None:
    def reply(request: Received) -> Reply:
        for name in ("temperature", "seed"):
            if name in request.body:
                return failure(400, f"Unsupported parameter: '{name}'")
        return answer(EMPTY)

    with FakeProvider(reply) as provider:
        assert complete(openai(provider)).text == EMPTY
        assert provider.calls == 3


def test_a_server_that_refuses_on_and_on_ends_as_unusable() -> None:
    with FakeProvider([FORMAT_REFUSED]) as provider:
        with pytest.raises(ModelUnusable, match="response_format"):
            complete(openai(provider))
        assert provider.calls == 2


def test_a_prompt_without_a_schema_asks_for_no_format() -> None:
    prompt = PROMPT.model_copy(update={"answer_schema": {}})
    with FakeProvider([answer("yes")]) as provider:
        complete(openai(provider), REQUEST.model_copy(update={"prompt": prompt}))
        assert "response_format" not in provider.chats[0].body


def test_a_known_model_without_schemas_is_asked_for_an_object() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        complete(openai(provider, "gpt-3.5-turbo"))
        assert provider.chats[0].body["response_format"] == {"type": "json_object"}


# prefixes that a provider caches


@pytest.mark.parametrize(
    ("model", "marked"),
    [("anthropic/claude-sonnet-4-5", True), ("openai/gpt-4o", False), ("openai/own-name", False)],
)
def test_the_shared_message_is_marked_where_a_provider_caches_only_what_is_marked(model: str, marked: bool) -> None:
    route = route_of(load_litellm(), model, None)
    assert route.marks_prefix is marked
    system, user = Message(role="system", content="# Playbook"), Message(role="user", content="stage: reflect")
    part = {"type": "text", "text": "# Playbook", "cache_control": {"type": "ephemeral"}}
    assert as_sent(system, route)["content"] == ([part] if marked else "# Playbook")
    assert as_sent(user, route)["content"] == "stage: reflect"
