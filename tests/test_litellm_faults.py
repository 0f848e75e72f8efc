"""What the litellm adapter makes of a fault, for each kind of provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from fake_provider import FakeProvider, Reply, answer, cut, failure, hang
from litellm_calls import CLIENTS, MARKS, REQUEST, complete, fault, openai, run
from ports import free_port

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.errors import CombeeError, ModelBusy, ModelFault, ModelTooLarge, ModelUnusable

pytestmark = MARKS


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
    async def ask() -> None:
        hung_up = asyncio.Event()

        async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            with suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.1)
            writer.close()
            hung_up.set()

        server = await asyncio.start_server(dribble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = LitellmModel("openai/served", f"http://127.0.0.1:{port}/v1")
        try:
            with pytest.raises(ModelFault, match=r"within 0\.6 s"):
                await model.complete(REQUEST.model_copy(update={"timeout": 0.6}))
        finally:
            await model.aclose()
            server.close()
            await hung_up.wait()

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


def test_only_our_own_errors_leave_the_adapter() -> None:
    for status in (300, 400, 402, 404, 408, 409, 418, 422, 429, 451, 500, 504, 529, 599):
        with FakeProvider([failure(status, "no")]) as provider:
            model = openai(provider)
            with pytest.raises(CombeeError):
                complete(model)
            assert provider.calls == 1
