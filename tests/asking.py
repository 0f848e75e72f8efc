"""Questions, clients that never really sleep, and asking as the pipeline does."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from virtual import clock

from combee_core.adapters.memory_store import MemoryStore
from combee_core.calls import Completion, Message, Prompt, Usage
from combee_core.client import Answered, Client
from combee_core.config import ModelSettings
from combee_core.errors import AnswerMalformed, CombeeError
from combee_core.ports import LanguageModel, Question, Store
from combee_core.saving import SavedAnswers

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

GOOD = {"value": 42}
CUT = Completion(text='{"value": 4', finish="length", usage=Usage(input_tokens=10, output_tokens=100, cost=0.5))
REFUSAL = Completion(text=None, refusal="I cannot help with that", usage=Usage(input_tokens=10, output_tokens=4))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, on a loop of its own."""
    return asyncio.run(coroutine)


class Naps:
    """A sleep that takes no time and remembers how long it should have taken."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def memory() -> Store:
    """An empty store that no other test sees."""
    return MemoryStore(uuid.uuid4().hex)


def client(
    model: LanguageModel,
    store: Store | None = None,
    *,
    version: str = "v1",
    sleep: Sleep | None = None,
    **settings: Any,
) -> Client:
    """A client whose sleeps are `Naps`, unless told otherwise."""
    answers = SavedAnswers(store or memory())
    return Client(model, answers, ModelSettings(**settings), version, sleep=sleep or Naps(), rng=random.Random(0))


def virtual_client(model: LanguageModel, store: Store | None = None, build: Any = None, **settings: Any) -> Client:
    """A client that lives in the time of a virtual loop; `build` makes fallbacks of their settings."""
    answers, its = SavedAnswers(store or memory()), ModelSettings(**settings)
    time = {"sleep": asyncio.sleep, "clock": clock}
    return Client(model, answers, its, "v1", rng=random.Random(0), build=build, **time)


def naps(of: Client) -> list[float]:
    """How long it slept, in order."""
    assert isinstance(of.sleep, Naps)
    return of.sleep.taken


def prompt(item: str = "t1", text: str = "what?", stage: str = "reflect") -> Prompt:
    """A short prompt."""
    schema = {"type": "object"}
    return Prompt(stage=stage, item=item, messages=(Message(role="user", content=text),), answer_schema=schema)


def value_of(data: Any) -> Any:
    """The parse function of `question`: takes `{"value": …}`."""
    if not isinstance(data, dict) or "value" not in data:
        raise AnswerMalformed("no value in it")
    return data["value"]


def question(item: str = "t1", text: str = "what?", stage: str = "reflect") -> Question[Any]:
    """A question whose answer is `{"value": …}`."""
    return Question(prompt(item, text, stage), value_of)


def ask(of: Client, about: Question[Any] | None = None, name: str = "run", **how: Any) -> Answered[Any]:
    """The answer to one question of the run `name`."""
    return run(of.ask(about or question(), name, **how))


def with_retries(of: Client, retries: int, about: Question[Any] | None = None) -> Answered[Any]:
    """Ask as the orchestrator does: repeat what is retryable, so many times."""
    for _ in range(retries):
        try:
            return ask(of, about)
        except CombeeError as error:
            if not error.retryable:
                raise
    return ask(of, about)
