"""The client: saved answers, waits, limits, refusals, receipts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import ACE, client, memory, naps, prompt, question, receipt, reflection, run, trajectory

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Answered, Client
from combee_core.errors import (
    AnswerEmpty,
    AnswerError,
    AnswerMalformed,
    AnswerTruncated,
    CombeeError,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
    RunStopped,
)
from combee_core.ports import Question, Store
from combee_core.saving import SavedAnswer
from combee_core.testing import FlakyModel, ScriptedModel

GOOD = {"value": 42}
CUT = Completion(text='{"value": 4', finish="length", usage=Usage(input_tokens=10, output_tokens=100, cost=0.5))
REFUSAL = Completion(text=None, refusal="I cannot help with that", usage=Usage(input_tokens=10, output_tokens=4))


def ask(of: Client, about: Question[Any] | None = None, name: str = "run", **how: Any) -> Answered[Any]:
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


# answers


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


def test_an_answer_is_in_the_store_before_it_is_used() -> None:
    """A process that is killed between taking an answer and using it has paid for it, and its successor uses it."""
    store = memory()
    model = ScriptedModel([GOOD])
    parses = 0

    def killed(data: Any) -> Any:
        nonlocal parses
        parses += 1
        if store.list("answers/"):
            raise KeyboardInterrupt
        return data["value"]

    with pytest.raises(KeyboardInterrupt):
        ask(client(model, store), Question(prompt(), killed))
    assert parses == 2
    assert ask(client(model, store)).value == 42
    assert len(model.requests) == 1


def test_of_two_processes_that_buy_the_same_answer_both_use_the_first() -> None:
    store = memory()

    async def both() -> list[Answered[Any]]:
        arrived = asyncio.Event()

        async def late(_: Request) -> dict[str, int]:
            arrived.set()
            return {"value": 1}

        async def later(_: Request) -> dict[str, int]:
            await arrived.wait()
            for _ in range(50):
                await asyncio.sleep(0.002)
                if store.list("answers/"):
                    break
            return {"value": 2}

        one, other = client(ScriptedModel(late), store), client(ScriptedModel(later), store)
        return list(await asyncio.gather(one.ask(question(), "r1"), other.ask(question(), "r2")))

    first, second = run(both())
    assert (first.value, second.value) == (1, 1)


def test_the_loser_of_a_race_has_paid_all_the_same() -> None:
    store = memory()
    winner, loser = client(ScriptedModel([GOOD]), store), client(ScriptedModel([GOOD]), store)
    key = loser.key(prompt())

    async def slow(_: Request) -> dict[str, int]:
        await winner.ask(question(), "r1")
        return GOOD

    loser.model = ScriptedModel(slow)
    ask(loser, name="r2")
    assert winner.answers.accepted(key, lambda _: True)
    assert [r.run for r in loser.ledger.receipts("r2")] == ["r2"]
    assert [r.run for r in loser.ledger.receipts("r1")] == ["r1"]


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


# the key


def keys(**settings: Any) -> str:
    return client(ScriptedModel([]), **settings).key(prompt())


@pytest.mark.parametrize(
    "changed",
    [
        {"api_base": "http://127.0.0.1:1/v1"},
        {"temperature": 0.5},
        {"max_output_tokens": 17},
        {"context_tokens": 1000},
        {"use_reasoning": True},
        {"version": "v2"},
    ],
)
def test_whatever_can_change_an_answer_changes_its_key(changed: dict[str, Any]) -> None:
    assert keys(**changed) != keys()


@pytest.mark.parametrize(
    "same", [{"concurrency": 3}, {"timeout": 1.0}, {"retries": 9}, {"max_waits": 0}, {"wait_budget": 1.0}]
)
def test_how_patiently_one_asks_is_not_in_the_key(same: dict[str, Any]) -> None:
    assert keys(**same) == keys()


def test_the_key_holds_prompt_schema_item_stage_model_and_seed() -> None:
    asking = client(ScriptedModel([]))
    original = prompt()
    others = [
        prompt(text="another text"),
        prompt(item="t2"),
        prompt(stage="curate"),
        original.model_copy(update={"answer_schema": {"type": "array"}}),
    ]
    assert len({asking.key(p) for p in (original, *others)}) == 5
    named = client(ScriptedModel([], name="served/elsewhere"))
    seeded = Client(asking.model, asking.answers, asking.settings, "v1", seed=1)
    assert len({c.key(original) for c in (asking, named, seeded)}) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"task": "Another question?"},
        {"steps": ()},
        {"policy": "be brief"},
        {"cited": ("misc-00001",)},
        {"trace_id": "t99"},
        {"outcome": trajectory(1).outcome.model_copy(update={"feedback": "expected 3"})},
    ],
)
def test_what_a_model_may_see_of_a_trace_changes_the_key(changed: dict[str, Any]) -> None:
    asking = client(ScriptedModel([]))
    questions = [ACE.reflect(ACE.empty(), trajectory(1)), ACE.reflect(ACE.empty(), trajectory(1, **changed))]
    assert len({asking.key(q.prompt) for q in questions}) == 2


def test_where_a_trace_was_found_is_not_in_the_key() -> None:
    asking = client(ScriptedModel([]))
    moved = trajectory(1, source="elsewhere.json", metadata={"user": "ada"})
    assert asking.key(ACE.reflect(ACE.empty(), trajectory(1)).prompt) == asking.key(
        ACE.reflect(ACE.empty(), moved).prompt
    )


def test_two_fresh_processes_have_the_same_keys() -> None:
    code = (
        "import sys; sys.path[:0] = ['.', 'tests']\n"
        "from makers import *\n"
        "from combee_core.testing import ScriptedModel\n"
        "from combee_core.runs import run_key\n"
        "c = client(ScriptedModel([]), temperature=0.1)\n"
        "q = ACE.curate(EMPTY, group(1, 2, 3)).prompt\n"
        "print(c.key(q), c.key(prompt()), run_key(request(), items(3), 0), ACE.fingerprint)\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            cwd=Path(__file__).parents[1],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert len(printed.pop().split()) == 4


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


# refusals


def test_a_refusal_costs_one_call_and_stays_a_refusal() -> None:
    store, model = memory(), ScriptedModel([REFUSAL, GOOD])
    for asking in (client(model, store), client(model, store)):
        with pytest.raises(ModelRefused, match=r"scripted/model.*I cannot help") as refused:
            ask(asking)
        assert not refused.value.retryable
    assert len(model.requests) == 1


def test_a_filtered_answer_is_a_refusal() -> None:
    with pytest.raises(ModelRefused, match="content_filter"):
        ask(client(ScriptedModel([Completion(text=None, finish="content_filter")])))


def test_a_refusal_by_the_provider_itself_stays_a_refusal_and_has_no_receipt() -> None:
    store, model = memory(), ScriptedModel([ModelRefused("400: blocked by policy"), GOOD])
    asking = client(model, store)
    for _ in range(2):
        with pytest.raises(ModelRefused, match="blocked by policy"):
            ask(asking)
    assert len(model.requests) == 1
    assert asking.ledger.receipts("run") == ()


def test_a_refusal_with_a_broken_character_is_recorded() -> None:
    store, model = memory(), ScriptedModel([Completion(text=None, refusal="no \ud83d")])
    for asking in (client(model, store), client(model, store)):
        with pytest.raises(ModelRefused):
            ask(asking)
    assert len(model.requests) == 1


# truncation


def test_a_cut_answer_is_asked_for_once_more_with_twice_the_room_and_then_is_final() -> None:
    model = ScriptedModel([CUT, CUT, GOOD])
    asking = client(model, max_output_tokens=100)
    with pytest.raises(AnswerTruncated, match="token limit") as first:
        ask(asking)
    with pytest.raises(AnswerTruncated, match="token limit") as second:
        ask(asking)
    assert (first.value.retryable, second.value.retryable) == (True, False)
    assert [r.max_output_tokens for r in model.requests] == [100, 200]
    with pytest.raises(AnswerTruncated) as third:
        ask(asking)
    assert not third.value.retryable
    assert len(model.requests) == 2


def test_the_wider_retry_may_succeed() -> None:
    model = ScriptedModel([CUT, GOOD])
    assert with_retries(client(model), 2).value == 42
    assert len(model.requests) == 2


def test_where_no_retry_is_allowed_the_first_cut_is_final() -> None:
    with pytest.raises(AnswerTruncated) as cut:
        ask(client(ScriptedModel([CUT]), retries=0))
    assert not cut.value.retryable


def test_a_wide_question_has_twice_the_room_at_once() -> None:
    model = ScriptedModel([CUT])
    with pytest.raises(AnswerTruncated) as cut:
        ask(client(model, max_output_tokens=100), wide=True)
    assert not cut.value.retryable
    assert model.requests[0].max_output_tokens == 200


def test_a_half_answer_is_never_mended_into_a_whole_one() -> None:
    whole_looking = Completion(text='{"value": 4}', finish="length")
    with pytest.raises(AnswerTruncated):
        ask(client(ScriptedModel([whole_looking])))


# waiting


def test_a_429_is_waited_out_for_as_long_as_the_provider_asks() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {1: ModelBusy("429", 7.0), 2: ModelBusy("429", 7.0)})
    asking = client(model)
    assert ask(asking).value == 42
    assert model.calls == 3
    assert len(naps(asking)) == 2
    assert all(7.0 <= nap < 8.0 for nap in naps(asking))


def test_without_a_hint_the_waits_grow_with_jitter() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {n: ModelBusy("529") for n in range(1, 7)})
    asking = client(model)
    ask(asking)
    assert all(0.5 * 2**n <= nap <= 1.5 * 2**n for n, nap in enumerate(naps(asking)))
    assert len(set(naps(asking))) == 6


def test_no_single_wait_without_a_hint_is_longer_than_a_minute_and_a_half() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {n: ModelBusy("529") for n in range(1, 11)})
    asking = client(model, max_waits=10, wait_budget=10_000)
    ask(asking)
    assert max(naps(asking)) <= 90.0


@pytest.mark.parametrize("hint", [-1.0, float("nan")])
def test_a_hint_that_makes_no_sense_is_not_followed(hint: float) -> None:
    asking = client(FlakyModel(ScriptedModel([GOOD]), {1: ModelBusy("429", hint)}))
    ask(asking)
    assert 0.5 <= naps(asking)[0] <= 1.5


@pytest.mark.parametrize("hint", [901.0, float("inf")])
def test_a_wait_beyond_the_budget_is_not_begun(hint: float) -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {1: ModelBusy("429: tomorrow", hint)})
    asking = client(model)
    with pytest.raises(ModelBusy, match="tomorrow"):
        ask(asking)
    assert naps(asking) == []
    assert model.calls == 1


def test_the_waiting_budget_is_for_all_waits_of_a_call_together() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), lambda *_: ModelBusy("429", 40.0))
    asking = client(model, wait_budget=100.0)
    with pytest.raises(ModelBusy):
        ask(asking)
    assert len(naps(asking)) == 2


@given(retries=st.integers(0, 3), waits=st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_the_greatest_number_of_requests_is_kept(retries: int, waits: int) -> None:
    model = FlakyModel(ScriptedModel([]), lambda *_: ModelBusy("529"))
    asking = client(model, retries=retries, max_waits=waits)
    with pytest.raises(ModelBusy):
        with_retries(asking, retries)
    assert model.calls == (retries + 1) * (waits + 1) == asking.settings.most_requests


@given(
    st.lists(st.sampled_from(["busy", "fault", "cut", "bad", "good"]), max_size=40),
    st.integers(0, 3),
    st.integers(0, 3),
)
@settings(max_examples=120, deadline=None)
def test_no_mixture_of_faults_makes_more_requests_than_promised(script: list[str], retries: int, waits: int) -> None:
    answers: dict[str, Any] = {
        "busy": ModelBusy("529"),
        "fault": ModelFault("500"),
        "cut": CUT,
        "bad": "bad",
        "good": GOOD,
    }
    model = ScriptedModel([answers[word] for word in script])
    asking = client(model, retries=retries, max_waits=waits)
    with suppress(CombeeError):
        with_retries(asking, retries)
    assert len(model.requests) <= asking.settings.most_requests
    assert asking.ledger.calls("run")["reflect"] == len(model.requests)


def test_other_faults_are_the_callers_to_retry() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), {1: ModelFault("500")})
    asking = client(model)
    with pytest.raises(ModelFault):
        ask(asking)
    assert model.calls == 1
    assert ask(asking).value == 42


def test_while_one_call_waits_another_has_its_slot() -> None:
    async def scene() -> list[str]:
        order: list[str] = []
        waiting, other_done = asyncio.Event(), asyncio.Event()

        async def nap(_: float) -> None:
            waiting.set()
            await other_done.wait()

        def faults(number: int, _: Request) -> Exception | None:
            return ModelBusy("429", 7.0) if number == 1 else None

        model = FlakyModel(ScriptedModel(lambda r: order.append(r.prompt.item) or GOOD), faults)
        asking = client(model, concurrency=1)
        asking.sleep = nap
        patient = asyncio.create_task(asking.ask(question("patient"), "run"))
        await waiting.wait()
        await asking.ask(question("other"), "run")
        other_done.set()
        await patient
        return order

    assert run(scene()) == ["other", "patient"]


@pytest.mark.parametrize("slots", [1, 3, 7])
def test_no_more_calls_are_in_flight_than_allowed(slots: int) -> None:
    async def scene() -> int:
        async def slowly(_: Request) -> dict[str, int]:
            await asyncio.sleep(0.005)
            return GOOD

        model = ScriptedModel(slowly)
        asking = client(model, concurrency=slots)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(30)))
        return model.most

    assert run(scene()) == slots


# size


def test_a_prompt_that_is_too_large_is_not_sent() -> None:
    model = ScriptedModel([GOOD])
    with pytest.raises(ModelTooLarge, match=r"t1: about 250 tokens, more than the 100") as large:
        ask(client(model, context_tokens=100), question(text="x" * 1000))
    assert not large.value.retryable
    assert model.requests == []


def test_the_models_own_limit_counts_where_none_is_set() -> None:
    model = ScriptedModel([GOOD], context_tokens=100)
    with pytest.raises(ModelTooLarge):
        ask(client(model), question(text="x" * 1000))
    assert ask(client(model, context_tokens=500), question(text="x" * 1000)).value == 42


def test_a_prompt_that_just_fits_is_sent() -> None:
    assert ask(client(ScriptedModel([GOOD]), context_tokens=100), question(text="x" * 400)).value == 42


# stopping


def test_an_unusable_model_stops_every_call_that_follows() -> None:
    model = FlakyModel(ScriptedModel([]), lambda *_: ModelUnusable("401: set OPENAI_API_KEY"))
    asking = client(model, concurrency=1)

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
    assert sorted(r.attempt for r in asking.ledger.receipts("run")) == [1, 2]
    assert asking.ledger.spend("run").calls == (0 if reopened else 2)


@pytest.mark.parametrize("error", [ModelFault("x"), ModelBusy("x"), ModelTooLarge("x"), ModelUnusable("x")])
def test_a_call_without_an_answer_has_no_receipt(error: ModelError) -> None:
    asking = client(ScriptedModel([error]), max_waits=0)
    with pytest.raises(type(error)):
        ask(asking)
    assert asking.ledger.receipts("run") == ()


def test_a_learners_question_goes_all_the_way() -> None:
    script = {"key_insight": "ask for 20, not 0.2", "bullet_tags": []}
    asking = client(ScriptedModel([script]))
    value = ask(asking, ACE.reflect(ACE.empty(), trajectory(3))).value
    assert value.trace_id == reflection(3).trace_id
    assert value.key_insight == "ask for 20, not 0.2"
