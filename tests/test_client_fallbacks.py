"""The client: a model that cannot be used, or has failed often enough, is followed by the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asking import GOOD, Naps, ask, memory, prompt, question, run

from combee_core.calls import Request
from combee_core.client import Client
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerMalformed,
    CombeeError,
    ModelBusy,
    ModelFailing,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
    ModelUseless,
)
from combee_core.ports import LanguageModel, Store
from combee_core.saving import SavedAnswers
from combee_core.testing import FlakyModel, ScriptedModel

DEAD = ModelFault("500")


def always(error: Exception) -> FlakyModel:
    return FlakyModel(ScriptedModel([], name="first"), lambda *_: error)


def good(name: str = "second") -> ScriptedModel:
    return ScriptedModel(lambda _: GOOD, name=name)


def client(first: LanguageModel, *others: LanguageModel, store: Store | None = None, **settings: Any) -> Client:
    """A client that asks `first`, then the others."""
    named = {
        "model": "first",
        "fallbacks": tuple(other.name for other in others),
        "hedge": 0.0,
        "retries": 2,
        **settings,
    }
    models = {other.name: other for other in others}
    answers = SavedAnswers(store or memory())
    return Client(first, answers, ModelSettings(**named), "v1", sleep=Naps(), build=lambda one: models[one.model])


def repeat(of: Client, about: Any = None) -> tuple[Any, int]:
    """Ask as the orchestrator does; the answer and how often it took."""
    for attempt in range(of.settings.task_retries + 1):
        try:
            return ask(of, about), attempt + 1
        except CombeeError as error:
            last = error
            if not error.retryable:
                break
    raise last


def test_a_model_that_cannot_be_used_is_followed_at_once_and_asked_no_more() -> None:
    first, second = always(ModelUnusable("401: set the key")), good()
    asking = client(first, second)
    answers = [ask(asking, question(f"t{n}")) for n in range(3)]
    assert first.calls == 1
    assert [one.receipts[0].model for one in answers] == ["second"] * 3


def test_a_model_is_followed_once_its_attempts_at_a_prompt_are_used_up() -> None:
    first, second = always(DEAD), good()
    answered, attempts = repeat(client(first, second))
    assert (answered.value, attempts, first.calls) == (42, 3, 3)
    assert [receipt.model for receipt in answered.receipts] == ["second"]


def test_the_last_model_has_its_retries_too_and_its_error_is_raised() -> None:
    first, second = always(DEAD), FlakyModel(ScriptedModel([], name="second"), lambda *_: ModelFault("503"))
    asking = client(first, second)
    with pytest.raises(ModelFault, match="503"):
        repeat(asking)
    assert (first.calls, second.calls) == (3, 3)
    assert first.calls + second.calls == asking.settings.attempts


def test_useless_answers_of_the_first_are_paid_for_and_the_second_answers() -> None:
    first, second = ScriptedModel(lambda _: "no JSON", name="first"), good()
    answered, _ = repeat(client(first, second))
    assert [(r.model, r.accepted) for r in answered.receipts] == [("first", False)] * 3 + [("second", True)]


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelTooLarge("too large")])
def test_a_refusal_and_what_is_too_large_are_not_asked_elsewhere(error: Exception) -> None:
    second = good()
    with pytest.raises(type(error)):
        ask(client(always(error), second))
    assert not second.requests


def test_a_provider_that_asks_to_wait_for_long_is_followed() -> None:
    asking = client(always(ModelBusy("429", 7200.0)), good())
    assert ask(asking).value == 42
    assert ask(asking, question("t2")).receipts[0].model == "second"


def test_what_the_second_answered_is_found_again_without_a_call() -> None:
    store = memory()
    ask(client(always(ModelUnusable("401")), good(), store=store))
    silent = client(always(ModelUnusable("401")), ScriptedModel([], name="second"), store=store)
    assert ask(silent).receipts[0].model == "second"


def test_answers_are_saved_under_the_model_that_gave_them() -> None:
    store = memory()
    ask(client(always(ModelUnusable("401")), good(), store=store))
    alone = client(ScriptedModel([], name="first"), store=store, retries=0)
    with pytest.raises(ModelFault, match="the script has 0 answers"):
        ask(alone)
    of_second = ModelSettings(model="second", hedge=0.0)
    assert ask(Client(ScriptedModel([], name="second"), SavedAnswers(store), of_second, "v1")).value == 42


def test_a_model_for_one_stage_is_asked_at_no_other() -> None:
    asking = client(always(ModelUnusable("401")), good(), fallbacks=("curate=second",))
    assert ask(asking, question("g1", stage="curate")).value == 42
    with pytest.raises(ModelUnusable, match="401"):
        ask(asking, question("t1", stage="reflect"))


def test_a_new_invocation_asks_the_first_model_again() -> None:
    first = FlakyModel(ScriptedModel(lambda _: GOOD, name="first"), {1: ModelUnusable("no quota")})
    asking = client(first, good())
    asking.begin("run", "one")
    assert ask(asking).receipts[0].model == "second"
    asking.begin("run", "two")
    assert ask(asking, question("t2")).receipts[0].model == "first"


def test_who_waits_for_the_first_model_as_it_turns_out_unusable_asks_the_second() -> None:
    first, second = always(ModelUnusable("401")), good()
    asking = client(first, second, concurrency=1, max_concurrency=1)

    async def scene() -> list[Any]:
        return await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(10)))

    assert [one.value for one in run(scene())] == [42] * 10
    assert first.calls == 1


# the breaker


def fail_in_a_row(of: Client, count: int) -> CombeeError:
    """Ask about so many items, each as often as it may be; the last error."""
    error: CombeeError | None = None
    for number in range(count):
        with pytest.raises(CombeeError) as caught:
            repeat(of, question(f"t{number}"))
        error = caught.value
    assert error
    return error


def test_a_model_whose_last_calls_failed_is_asked_no_more_and_the_causes_are_grouped() -> None:
    def faults(number: int, _: Request) -> Exception:
        return ModelFault("time-out") if number % 4 == 0 else ModelFault("529: overloaded, request req_8f3e2")

    model = FlakyModel(ScriptedModel([], name="first"), faults)
    asking = client(model, breaker=4, retries=0)
    error = fail_in_a_row(asking, 10)
    assert model.calls == 4
    assert str(error) == (
        "first: 4 calls in a row failed: 3 × ModelFault: 529: overloaded, request …; 1 × ModelFault: time-out; "
        "it is asked no more (--breaker 4)"
    )
    assert isinstance(error, ModelFailing)


def test_only_calls_that_failed_finally_count() -> None:
    model = always(DEAD)
    asking = client(model, breaker=4, retries=2)
    fail_in_a_row(asking, 10)
    assert model.calls == 4 * 3


def test_one_good_answer_closes_the_circuit() -> None:
    model = FlakyModel(good("first"), lambda number, _: None if number % 4 == 0 else DEAD)
    asking = client(model, breaker=4, retries=0)
    for number in range(40):
        if number % 4 == 3:
            assert ask(asking, question(f"t{number}")).value == 42
        else:
            with pytest.raises(ModelFault):
                ask(asking, question(f"t{number}"))


def test_useless_answers_in_a_row_end_it_without_waiting_for_all_retries() -> None:
    model = ScriptedModel(lambda _: "no JSON at all", name="first")
    error = fail_in_a_row(client(model, breaker=5), 5)
    assert "5 answers in a row are useless: 5 × AnswerMalformed" in str(error)
    assert isinstance(error, ModelUseless), "another day's traces may suit it better"
    assert len(model.requests) == 5


def test_refusals_in_a_row_end_it_too_and_the_log_has_it_as_an_event(caplog: pytest.LogCaptureFixture) -> None:
    model = always(ModelRefused("the content was filtered"))
    assert isinstance(fail_in_a_row(client(model, breaker=3), 5), ModelFailing)
    assert model.calls == 3
    (line,) = [record for record in caplog.records if getattr(record, "event", "") == "breaker"]
    assert line.__dict__["fields"] == {"model": model.name, "causes": 3}


def test_first_answers_that_were_cut_do_not_count_since_the_retry_has_more_room() -> None:
    from asking import CUT

    def answer(request: Request) -> Any:
        return CUT if request.max_output_tokens == 8192 else GOOD

    asking = client(ScriptedModel(answer, name="first"), breaker=3)

    async def scene() -> list[Any]:
        return await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(9)), return_exceptions=True)

    run(scene())
    assert all(repeat(asking, question(f"t{n}"))[0].value == 42 for n in range(9))


def test_a_breaker_of_0_never_trips() -> None:
    model = always(DEAD)
    assert not isinstance(fail_in_a_row(client(model, breaker=0, retries=0), 50), ModelFailing)
    assert model.calls == 50


def test_the_breaker_of_the_first_model_hands_over_to_the_second() -> None:
    first, second = always(DEAD), good()
    asking = client(first, second, breaker=2)
    for number in range(10):
        repeat(asking, question(f"t{number}"))
    assert first.calls == 2 * 3
    assert len(second.requests) == 10


def test_an_answer_that_is_malformed_now_and_then_is_only_asked_for_again() -> None:
    model = ScriptedModel(["no JSON", GOOD] * 30, name="first")
    asking = client(model, breaker=2)
    for number in range(30):
        with pytest.raises(AnswerMalformed):
            ask(asking, question(f"t{number}"))
        assert ask(asking, question(f"t{number}")).value == 42


def test_keys_of_a_client_without_fallbacks_are_what_they_were() -> None:
    one, two = client(good("first")), client(good("first"), good())
    assert one.key(prompt()) == two.key(prompt())
