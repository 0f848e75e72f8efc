"""The adapter against a scripted provider on loopback: real litellm, real HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from fake_provider import FakeProvider, Received, Reply, answer, cut, failure, hang

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.answers import read_answer
from combee_core.calls import Completion, Message, Prompt, Request, Usage
from combee_core.errors import (
    AnswerEmpty,
    AnswerTruncated,
    CombeeError,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
)

# litellm declares a typed dictionary in a way that pydantic warns about, once, when Mistral is first used.
pytestmark = pytest.mark.filterwarnings("ignore:.*using the `ReadOnly` qualifier:UserWarning")

T = TypeVar("T")
SCHEMA = {"type": "object", "properties": {"operations": {"type": "array"}}, "required": ["operations"]}
PROMPT = Prompt(
    stage="curate",
    item="curate-g01",
    messages=(Message(role="system", content="You curate."), Message(role="user", content="Stage: curate")),
    answer_schema=SCHEMA,
)
REQUEST = Request(prompt=PROMPT, max_output_tokens=64, temperature=0.5, seed=2**40 + 7, timeout=20)
EMPTY = '{"operations": []}'
FORMAT_REFUSED = failure(400, "'response_format' of type json_schema is not supported")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC", "MISTRAL"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)


def run(model: LitellmModel, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async def closing() -> T:
        try:
            return await work()
        finally:
            await model.aclose()

    return asyncio.run(closing())


def complete(model: LitellmModel, request: Request = REQUEST) -> Completion:
    return run(model, lambda: model.complete(request))


def preflight(model: LitellmModel, timeout: float = 10.0) -> None:
    run(model, lambda: model.preflight(timeout))


def openai(provider: FakeProvider, name: str = "served") -> LitellmModel:
    return LitellmModel(f"openai/{name}", provider.url)


def anthropic(provider: FakeProvider) -> LitellmModel:
    return LitellmModel("anthropic/claude-sonnet-4-5", provider.url.removesuffix("/v1"))


def mistral(provider: FakeProvider) -> LitellmModel:
    return LitellmModel("mistral/mistral-large-latest", provider.url)


CLIENTS = [openai, anthropic, mistral]


def fault(reply: Reply, client: Callable[[FakeProvider], LitellmModel], timeout: float = 20) -> ModelError:
    """The error that a reply becomes, after exactly one request."""
    with FakeProvider([reply]) as provider:
        model = client(provider)
        with pytest.raises(ModelError) as caught:
            complete(model, REQUEST.model_copy(update={"timeout": timeout}))
        assert provider.calls == 1, caught.value
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return caught.value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
        assert provider.chats[0].body["messages"][0]["content"] == "a?b"


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
    with pytest.raises(ModelRefused, match="cannot help"):
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


@pytest.mark.parametrize("client", CLIENTS)
def test_a_rate_limit_is_one_request_and_says_how_long_to_wait(
    client: Callable[[FakeProvider], LitellmModel],
) -> None:
    error = fault(failure(429, "slow down", retry_after="7"), client)
    assert isinstance(error, ModelBusy)
    assert error.retry_after == 7.0
    assert "RateLimitError 429: slow down" in str(error)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_overloaded_provider_is_busy_whatever_the_library_calls_it(
    client: Callable[[FakeProvider], LitellmModel],
) -> None:
    error = fault(failure(529, "Overloaded", kind="overloaded_error"), client)
    assert isinstance(error, ModelBusy)
    assert "529: Overloaded" in str(error)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_too_large_is_not_a_rate_limit(client: Callable[[FakeProvider], LitellmModel]) -> None:
    assert isinstance(fault(failure(413, "request too large"), client), ModelTooLarge)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_context_overflow_is_recognised_in_a_plain_bad_request(
    client: Callable[[FakeProvider], LitellmModel],
) -> None:
    words = "Prompt contains 9000 tokens, too large for model with 8192 maximum context length"
    assert isinstance(fault(failure(400, words), client), ModelTooLarge)
    assert isinstance(fault(failure(400, "no", code="context_length_exceeded"), client), ModelTooLarge)
    assert isinstance(fault(failure(400, "bad thing"), client), ModelUnusable)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_key_is_one_request_and_names_the_variable(
    client: Callable[[FakeProvider], LitellmModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    unset = fault(failure(401, "bad key"), client)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.setenv(name, "wrong")
    for error in (unset, fault(failure(401, "bad key"), client)):
        assert isinstance(error, ModelUnusable)
        assert "AuthenticationError 401: bad key" in str(error)
        assert "_API_KEY" in str(error)
        assert str(error).split(":")[0].split("/")[0].upper() in str(error)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_connection_dropped_in_mid_answer_is_a_fault_and_no_empty_success(
    client: Callable[[FakeProvider], LitellmModel], share: float
) -> None:
    error = fault(cut(answer(json.dumps({"operations": []}) * 50), share), client)
    assert isinstance(error, ModelFault)
    assert "dropped the connection" in str(error)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_never_answers_is_a_fault_with_the_time_out(
    client: Callable[[FakeProvider], LitellmModel],
) -> None:
    error = fault(hang(), client, timeout=0.5)
    assert isinstance(error, ModelFault)
    assert "time-out: no whole answer" in str(error)
    assert "within 0.5 s" in str(error)


def test_the_time_out_is_for_the_whole_answer_and_not_for_each_byte() -> None:
    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        try:
            for _ in range(50):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.1)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def ask() -> None:
        server = await asyncio.start_server(dribble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = LitellmModel("openai/served", f"http://127.0.0.1:{port}/v1")
        try:
            with pytest.raises(ModelFault, match=r"within 0\.6 s"):
                await model.complete(REQUEST.model_copy(update={"timeout": 0.6}))
        finally:
            await model.aclose()
            server.close()
            await asyncio.sleep(0.3)

    asyncio.run(ask())


def test_a_refused_port_says_that_nothing_listens_at_the_address() -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(ModelFault, match=f"nothing listens at {address}"):
        complete(LitellmModel("openai/served", address))


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b""),
        Reply(b"<html>proxy</html>"),
        Reply(b'{"error": {"message": "boo", "code": 500}}'),
        Reply(b'{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'),
        failure(500, "boom"),
        failure(503, "down"),
        failure(502, "bad gateway"),
    ],
)
def test_an_answer_that_is_none_is_a_fault(reply: Reply) -> None:
    assert isinstance(fault(reply, openai), ModelFault)


def test_cancelling_passes_through() -> None:
    with FakeProvider([hang()]) as provider:
        model = openai(provider)

        async def cancelled() -> None:
            task = asyncio.create_task(model.complete(REQUEST))
            while not provider.calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(model, cancelled)


def test_a_later_fault_is_not_mistaken_for_the_one_being_handled() -> None:
    with FakeProvider([failure(429, "slow", retry_after="9"), Reply(b"<html>")]) as provider:
        model = openai(provider)

        async def again_in_the_handler() -> None:
            try:
                await model.complete(REQUEST)
            except ModelBusy:
                await model.complete(REQUEST)

        with pytest.raises(ModelFault):
            run(model, again_in_the_handler)


def test_a_closed_model_can_be_used_again_in_another_loop() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        model = openai(provider)
        assert [complete(model).text, complete(model).text] == [EMPTY, EMPTY]


def test_closing_leaves_no_task_and_a_model_that_still_works() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        model = openai(provider)

        async def twice() -> None:
            for _ in range(2):
                assert (await model.complete(REQUEST)).text == EMPTY
                await model.aclose()
                assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(twice())


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


def test_only_our_own_errors_leave_the_adapter() -> None:
    for status in (300, 400, 402, 404, 408, 409, 418, 422, 429, 451, 500, 504, 529, 599):
        with FakeProvider([failure(status, "no")]) as provider:
            model = openai(provider)
            with pytest.raises(CombeeError):
                complete(model)
            assert provider.calls == 1


def test_nothing_is_printed_and_no_litellm_is_loaded_before_the_first_call() -> None:
    script = (
        "import asyncio, sys\n"
        "from combee_core.adapters.litellm_model import LitellmModel\n"
        "from combee_core.errors import ModelUnusable\n"
        "model = LitellmModel('gpt4o-typo')\n"
        "asyncio.run(model.aclose())\n"
        "assert 'litellm' not in sys.modules\n"
        "try: asyncio.run(model.preflight())\n"
        "except ModelUnusable: sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, ""), done.stderr


def test_without_litellm_the_error_says_what_to_install() -> None:
    script = (
        "import asyncio, sys\n"
        "sys.modules['litellm'] = None\n"
        "from combee_core.adapters.litellm_model import LitellmModel\n"
        "from combee_core.errors import ModelUnusable\n"
        "try: asyncio.run(LitellmModel('openai/gpt-4o').preflight())\n"
        "except ModelUnusable as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'combee-pipeline[llm]'" in done.stdout
