"""The litellm adapter pointed at a scripted provider on loopback: real litellm, real HTTP."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from fake_provider import FakeProvider, Reply, failure

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.calls import Completion, Message, Prompt, Request
from combee_core.errors import ModelError

# litellm declares a typed dictionary in a way that pydantic warns about, once, when Mistral is first used.
MARKS = [
    pytest.mark.filterwarnings("ignore:.*using the `ReadOnly` qualifier:UserWarning"),
    pytest.mark.usefixtures("no_keys"),
]

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


def run(model: LitellmModel, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of `work`, on a loop of its own, with the model closed afterwards."""

    async def closing() -> T:
        try:
            return await work()
        finally:
            await model.aclose()

    return asyncio.run(closing())


def complete(model: LitellmModel, request: Request = REQUEST) -> Completion:
    """One answer."""
    return run(model, lambda: model.complete(request))


def preflight(model: LitellmModel, timeout: float = 10.0) -> None:
    """The check before the first call."""
    run(model, lambda: model.preflight(timeout))


def openai(provider: FakeProvider, name: str = "served") -> LitellmModel:
    """The provider as one of the OpenAI shape."""
    return LitellmModel(f"openai/{name}", provider.url)


def anthropic(provider: FakeProvider) -> LitellmModel:
    """The provider as if it were Anthropic."""
    return LitellmModel("anthropic/claude-sonnet-4-5", provider.url.removesuffix("/v1"))


def mistral(provider: FakeProvider) -> LitellmModel:
    """The provider as if it were Mistral."""
    return LitellmModel("mistral/mistral-large-latest", provider.url)


CLIENTS = [openai, anthropic, mistral]


def fault(reply: Reply, client: Callable[[FakeProvider], LitellmModel], timeout: float = 20) -> ModelError:
    """The error that a reply becomes, after exactly one request."""
    with FakeProvider([reply]) as provider:
        model = client(provider)
        with pytest.raises(ModelError) as caught:
            complete(model, REQUEST.model_copy(update={"timeout": timeout}))
        assert provider.calls == 1, caught.value
    assert str(pickle.loads(pickle.dumps(caught.value.alone()))) == str(caught.value)
    return caught.value
