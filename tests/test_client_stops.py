"""The client: what stops it, and what was paid by then."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from asking import CUT, GOOD, REFUSAL, ask, client, memory, naps, question, run

from combee_core.adapters.memory_store import MemoryStore
from combee_core.calls import Request
from combee_core.errors import (
    AnswerMalformed,
    AnswerTruncated,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
    RunStopped,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from combee_core.ledger import Spend
from combee_core.ports import Store
from combee_core.testing import FlakyModel, ScriptedModel

# stopping


def test_an_unusable_model_stops_every_call_that_follows() -> None:
    model = FlakyModel(ScriptedModel([]), lambda *_: ModelUnusable("401: set OPENAI_API_KEY"))
    asking = client(model, concurrency=1, max_concurrency=1)

    async def scene() -> list[Any]:
        many = (asking.ask(question(f"t{n}"), "run") for n in range(20))
        return await asyncio.gather(*many, return_exceptions=True)

    errors = run(scene())
    assert model.calls == 1
    assert all(isinstance(e, ModelUnusable) and not e.retryable and "OPENAI_API_KEY" in str(e) for e in errors)
    assert naps(asking) == []


def test_a_call_that_is_waiting_when_the_model_turns_out_unusable_is_not_repeated() -> None:
    def faults(number: int, _: Request) -> Exception | None:
        return ModelBusy("429", 1.0) if number == 1 else ModelUnusable("no quota")

    model = FlakyModel(ScriptedModel([]), faults)
    asking = client(model)

    async def scene() -> list[Any]:
        first = asyncio.create_task(asking.ask(question("t1"), "run"))
        second = asyncio.create_task(asking.ask(question("t2"), "run"))
        return await asyncio.gather(first, second, return_exceptions=True)

    assert [type(e) for e in run(scene())] == [ModelUnusable, ModelUnusable]
    assert model.calls == 2


class Full(MemoryStore):
    """A store with no room for an answer."""

    error: StoreError

    def create(self, key: str, data: bytes) -> bool:
        if key.startswith("answers/"):
            raise self.error
        return super().create(key, data)


@pytest.mark.parametrize("error", [StoreError("no space left"), StoreDenied("403"), StoreUnavailable("no answer")])
def test_a_store_that_takes_no_answer_stops_every_call_that_follows(error: StoreError) -> None:
    store = Full(uuid.uuid4().hex)
    store.error = error
    model = FlakyModel(ScriptedModel([GOOD] * 20), lambda *_: None)
    asking = client(model, store, concurrency=2, max_concurrency=2)

    async def scene() -> list[Any]:
        many = (asking.ask(question(f"t{n}"), "run") for n in range(20))
        return await asyncio.gather(*many, return_exceptions=True)

    assert {type(one) for one in run(scene())} == {type(error)}
    assert model.calls == 2, "what was in flight is lost, and nothing besides"


def test_a_stopped_client_makes_no_call_and_still_gives_what_is_saved() -> None:
    store, model = memory(), ScriptedModel([GOOD])
    asking = client(model, store)
    ask(asking)
    asking.stop("the run was cancelled")
    assert ask(asking).value == 42
    with pytest.raises(RunStopped, match="cancelled"):
        ask(asking, question("t2"))
    assert len(model.requests) == 1


def test_what_is_in_flight_when_the_client_stops_is_saved() -> None:
    store = memory()

    async def scene() -> None:
        async def stopping(_: Request) -> dict[str, int]:
            asking.stop("cancelled")
            return GOOD

        asking = client(ScriptedModel(stopping), store)
        assert (await asking.ask(question(), "run")).value == 42

    run(scene())
    assert ask(client(ScriptedModel([]), store)).value == 42


def test_each_stopped_call_gets_an_error_of_its_own() -> None:
    asking = client(ScriptedModel([]))
    asking.stop("enough")
    errors = []
    for number in range(2):
        with pytest.raises(RunStopped) as stopped:
            ask(asking, question(f"t{number}"))
        errors.append(stopped.value)
    assert errors[0] is not errors[1]


def test_a_new_invocation_asks_again_and_counts_from_zero() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {1: ModelUnusable("wrong key")})
    asking = client(model)
    with pytest.raises(ModelUnusable):
        ask(asking)
    asking.begin("run")
    assert ask(asking).value == 42
    assert asking.ledger.calls("run")["reflect"] == 1


# the ledger


def test_requests_are_counted_by_stage_and_run_whatever_comes_of_them() -> None:
    model = ScriptedModel([ModelFault("500"), "bad", GOOD, GOOD])
    asking = client(model)
    for error in (ModelFault, AnswerMalformed):
        with pytest.raises(error):
            ask(asking)
    ask(asking)
    ask(asking, question("g1", stage="curate"), "other")
    assert asking.ledger.calls("run") == {"rollout": 0, "reflect": 3, "curate": 0, "merge": 0}
    assert asking.ledger.calls("other")["curate"] == 1


@pytest.mark.parametrize("reopened", [False, True], ids=["same process", "next process"])
def test_rejected_answers_are_paid_for_too(reopened: bool) -> None:
    store: Store = memory()
    asking = client(ScriptedModel([CUT, REFUSAL]), store)
    for error in (AnswerTruncated, ModelRefused):
        with pytest.raises(error):
            ask(asking)
    if reopened:
        asking = client(ScriptedModel([]), store)
    assert asking.ledger.total("run").calls == 2
    assert asking.ledger.spend("run").calls == (0 if reopened else 2)


@pytest.mark.parametrize("error", [ModelFault("x"), ModelBusy("x"), ModelTooLarge("x"), ModelUnusable("x")])
def test_a_call_without_an_answer_has_no_receipt(error: ModelError) -> None:
    asking = client(ScriptedModel([error]), max_waits=0)
    with pytest.raises(type(error)):
        ask(asking)
    assert asking.ledger.total("run") == Spend()
