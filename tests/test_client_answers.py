"""The client: what is bought, saved, shared and rejected."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asking import GOOD, REFUSAL, ask, client, memory, prompt, question, run, value_of
from builders import ACE
from lessons import reflection, trajectory
from run_records import receipt

from combee_core.adapters.memory_store import MemoryStore
from combee_core.calls import Completion, Request
from combee_core.client import Answered
from combee_core.errors import AnswerEmpty, AnswerError, AnswerMalformed, ModelRefused
from combee_core.ports import Question
from combee_core.saving import SavedAnswer
from combee_core.testing import ScriptedModel


def test_an_answer_is_parsed_and_its_receipt_says_who_paid() -> None:
    answered = ask(client(ScriptedModel([GOOD])), question("t7"), "night")
    assert answered.value == 42
    (paid,) = answered.receipts
    assert (paid.item, paid.stage, paid.attempt, paid.accepted, paid.run) == ("t7", "reflect", 1, True, "night")
    assert paid.model == "scripted/model"
    assert paid.usage.input_tokens == 10


def test_the_request_carries_the_settings() -> None:
    model = ScriptedModel([GOOD])
    ask(client(model, temperature=0.3, max_output_tokens=77, timeout=9.0))
    (sent,) = model.requests
    assert (sent.temperature, sent.max_output_tokens, sent.timeout) == (0.3, 77, 9.0)


def test_a_saved_answer_is_never_bought_again() -> None:
    store, model = memory(), ScriptedModel([GOOD])
    first = ask(client(model, store))
    second = ask(client(model, store), name="another night")
    assert len(model.requests) == 1
    assert second.value == first.value
    assert second.receipts == first.receipts


class Killed(BaseException):
    """A kill -9, as far as a process can feel it."""


class KillingStore(MemoryStore):
    """A store whose process is killed right after a write."""

    def create(self, key: str, data: bytes) -> bool:
        super().create(key, data)
        raise Killed


def test_an_answer_is_in_the_store_before_it_is_used() -> None:
    """A process that is killed between taking an answer and using it has paid for it, and its successor uses it."""
    name, model = "killed before use", ScriptedModel([GOOD])
    with pytest.raises(Killed):
        ask(client(model, KillingStore(name)))
    assert ask(client(model, MemoryStore(name))).value == 42
    assert len(model.requests) == 1


@pytest.mark.parametrize("saved", [False, True], ids=["fresh", "saved"])
def test_an_answer_is_parsed_once(saved: bool) -> None:
    store, parses = memory(), []

    def parse(data: Any) -> Any:
        parses.append(data)
        return value_of(data)

    if saved:
        ask(client(ScriptedModel([GOOD]), store))
    assert ask(client(ScriptedModel([GOOD]), store), Question(prompt(), parse)).value == 42
    assert parses == [GOOD]


def test_of_two_processes_that_buy_the_same_answer_both_use_the_first() -> None:
    store = memory()

    async def both() -> list[Answered[Any]]:
        other_asked, first_saved = asyncio.Event(), asyncio.Event()

        async def late(_: Request) -> dict[str, int]:
            await other_asked.wait()
            return {"value": 1}

        async def later(_: Request) -> dict[str, int]:
            other_asked.set()
            await first_saved.wait()
            return {"value": 2}

        async def first() -> Answered[Any]:
            answered = await client(ScriptedModel(late), store).ask(question(), "r1")
            first_saved.set()
            return answered

        other = client(ScriptedModel(later), store)
        return list(await asyncio.gather(first(), other.ask(question(), "r2")))

    first, second = run(both())
    assert (first.value, second.value) == (1, 1)


def test_the_loser_of_a_race_has_paid_all_the_same() -> None:
    store = memory()
    winner = client(ScriptedModel([GOOD]), store)

    async def slow(_: Request) -> dict[str, int]:
        await winner.ask(question(), "r1")
        return GOOD

    loser = client(ScriptedModel(slow), store)
    ask(loser, name="r2")
    assert winner.answers.accepted(loser.key(prompt()), lambda _: True)
    assert loser.ledger.total("r2").calls == 1
    assert loser.ledger.total("r1").calls == 1


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff\xfe", b"[]", b'{"answer": 1}', b'{"answer": {"value": 4'])
def test_a_damaged_record_counts_as_absent_and_is_replaced(garbage: bytes) -> None:
    store, model = memory(), ScriptedModel([GOOD])
    damaged = client(model, store)
    key = damaged.key(prompt())
    assert store.create(f"answers/{key[:2]}/{key}.json", garbage)
    assert ask(damaged).value == 42
    assert ask(client(model, store)).value == 42
    assert len(model.requests) == 1


def test_an_answer_that_the_present_code_cannot_parse_counts_as_absent_and_is_replaced() -> None:
    store, model = memory(), ScriptedModel([GOOD])
    asking = client(model, store)
    old = SavedAnswer(answer={"worth": 1}, receipt=receipt())
    asking.answers.accept(asking.key(prompt()), old, lambda _: True)
    assert ask(asking).value == 42
    assert ask(client(model, store)).value == 42
    assert len(model.requests) == 1


def test_a_fault_of_the_parsing_code_is_raised_as_it_is_and_the_call_is_counted() -> None:
    asking = client(ScriptedModel([GOOD]))

    def broken(_: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(asking, Question(prompt(), broken))
    assert asking.ledger.spend("run").calls == 1


def test_the_same_question_asked_many_times_at_once_is_paid_for_once() -> None:
    async def scene() -> tuple[int, set[Any]]:
        async def slowly(_: Request) -> dict[str, int]:
            await asyncio.sleep(0.01)
            return GOOD

        model = ScriptedModel(slowly)
        asking = client(model)
        answers = await asyncio.gather(*(asking.ask(question(), "run") for _ in range(10)))
        return len(model.requests), {a.value for a in answers}

    assert run(scene()) == (1, {42})


def test_a_question_refused_while_its_twin_waits_is_refused_for_both() -> None:
    async def scene() -> tuple[int, list[Any]]:
        model = ScriptedModel(lambda _: REFUSAL)
        asking = client(model)
        errors = await asyncio.gather(*(asking.ask(question(), "run") for _ in range(2)), return_exceptions=True)
        return len(model.requests), errors

    calls, errors = run(scene())
    assert calls == 1
    assert [type(error) for error in errors] == [ModelRefused, ModelRefused]


# rejected answers


def test_a_malformed_answer_is_counted_not_saved_and_the_next_attempt_draws_anew() -> None:
    store, model = memory(), ScriptedModel(["no json here", {"other": 1}, GOOD])
    asking = client(model, store)
    for _ in range(2):
        with pytest.raises(AnswerMalformed, match="scripted/model"):
            ask(asking)
    answered = ask(asking)
    assert [r.seed for r in model.requests] == [0, 1, 2]
    assert [(r.attempt, r.accepted) for r in answered.receipts] == [(1, False), (2, False), (3, True)]


def test_a_restart_goes_on_counting_attempts() -> None:
    store, model = memory(), ScriptedModel(["no json", GOOD])
    with pytest.raises(AnswerError):
        ask(client(model, store))
    ask(client(model, store))
    assert [r.seed for r in model.requests] == [0, 1]


def test_a_damaged_rejection_still_counts_as_an_attempt() -> None:
    store, model = memory(), ScriptedModel([GOOD])
    asking = client(model, store)
    key = asking.key(prompt())
    store.create(f"answers/{key[:2]}/{key}.rejected-1.json", b"{garbage")
    answered = ask(asking)
    assert model.requests[0].seed == 1
    assert [r.attempt for r in answered.receipts] == [2]


def test_an_empty_answer_may_be_asked_for_again() -> None:
    with pytest.raises(AnswerEmpty) as empty:
        ask(client(ScriptedModel([Completion(text="")])))
    assert empty.value.retryable


def test_a_learners_question_goes_all_the_way() -> None:
    script = {"key_insight": "ask for 20, not 0.2", "bullet_tags": []}
    asking = client(ScriptedModel([script]))
    value = ask(asking, ACE.reflect(ACE.empty(), trajectory(3))).value
    assert value.trace_id == reflection(3).trace_id
    assert value.key_insight == "ask for 20, not 0.2"
