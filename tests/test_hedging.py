"""A slow call is sent once more: when, who wins, and what is booked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asking import CUT, GOOD, REFUSAL, memory, question, virtual_client
from hypothesis import given
from hypothesis import strategies as st
from virtual import run_virtually

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.errors import (
    AnswerMalformed,
    AnswerTruncated,
    ModelBusy,
    ModelFault,
    ModelRefused,
    ModelTimeout,
    ModelUnusable,
)
from combee_core.hedging import AT_LEAST, ENOUGH, Patience, Try
from combee_core.ports import Store
from combee_core.testing import FlakyModel, ScriptedModel

PRICED = Usage(input_tokens=10, output_tokens=5, cost=0.25)

Told = dict[int, tuple[float, Any]]
"""Seconds and answer of the first, second, … request about the slow item."""


def model_of(told: Told, usual: float = 2.0) -> ScriptedModel:
    """Answers in `usual` seconds, and about the item `slow` as told."""
    asked = 0

    async def script(request: Request) -> Any:
        nonlocal asked
        seconds, answer = usual, GOOD
        if request.prompt.item == "slow":
            asked += 1
            seconds, answer = told[asked]
        await asyncio.sleep(seconds)
        return answer

    return ScriptedModel(script)


def priced(value: int) -> Completion:
    """A good answer that costs a quarter of a dollar."""
    return Completion(text=f'{{"value": {value}}}', usage=PRICED, model="m")


async def warm(asking: Client, count: int = ENOUGH) -> None:
    """So many answers, so that the median is known."""
    await asyncio.gather(*(asking.ask(question(f"warm{n}"), "warm") for n in range(count)))


def slow_value(told: Told, store: Store | None = None, **settings: Any) -> tuple[Any, float, Client, ScriptedModel]:
    """What the slow question was answered with, after how many seconds, by whom."""

    async def scene() -> tuple[Any, float, Client, ScriptedModel]:
        model = model_of(told)
        asking = virtual_client(model, store, **settings)
        await warm(asking)
        began = asking.clock()
        value = (await asking.ask(question("slow"), "run")).value
        took = asking.clock() - began
        await asyncio.sleep(1000)
        return value, took, asking, model

    return run_virtually(scene())


def of_slow(model: ScriptedModel) -> list[Request]:
    return [request for request in model.requests if request.prompt.item == "slow"]


# when


def test_a_call_slower_than_four_medians_is_sent_once_more_and_the_first_answer_wins() -> None:
    value, took, _, model = slow_value({1: (500.0, priced(1)), 2: (3.0, priced(2))})
    assert (value, took) == (2, 8.0 + 3.0)
    first, second = of_slow(model)
    assert first == second


def test_the_first_request_may_still_win() -> None:
    value, took, *_ = slow_value({1: (9.0, priced(1)), 2: (50.0, priced(2))})
    assert (value, took) == (1, 9.0)


@pytest.mark.parametrize(("hedge", "seconds"), [(4.0, 7.9), (0.0, 500.0), (6.0, 11.9)])
def test_a_call_within_its_time_is_sent_once(hedge: float, seconds: float) -> None:
    value, took, _, model = slow_value({1: (seconds, priced(1))}, hedge=hedge)
    assert (value, took, len(of_slow(model))) == (1, seconds, 1)


def test_no_call_is_slow_before_five_seconds() -> None:
    async def scene() -> int:
        model = model_of({1: (AT_LEAST - 0.1, GOOD)}, usual=0.1)
        asking = virtual_client(model)
        await warm(asking)
        await asking.ask(question("slow"), "run")
        return len(of_slow(model))

    assert run_virtually(scene()) == 1


def test_a_call_that_hangs_from_the_start_is_sent_again_once_its_stage_has_enough_answers() -> None:
    async def scene() -> float:
        asking = virtual_client(model_of({1: (10_000.0, priced(1)), 2: (2.0, priced(2))}))
        slow = asyncio.create_task(asking.ask(question("slow"), "run"))
        await asyncio.sleep(60)
        await warm(asking, ENOUGH - 1)
        assert not slow.done()
        await warm(asking, ENOUGH)
        assert (await slow).value == 2
        return asking.clock()

    assert run_virtually(scene()) < 75.0


@given(st.lists(st.floats(0.01, 1000), max_size=30), st.floats(0, 10), st.floats(0, 5000))
def test_how_long_a_call_may_take_follows_the_median(seen: list[float], times: float, now: float) -> None:
    patience = Patience(times, lambda: now)
    for seconds in seen:
        patience.answered("reflect", seconds)
    limit = patience.limit("reflect")
    assert patience.limit("merge") == float("inf")
    assert limit >= AT_LEAST
    assert (limit < float("inf")) == (len(seen) >= ENOUGH and times > 0)
    assert patience.left(Try("reflect")) == float("inf")
    assert patience.left(Try("reflect", sent=0.0)) == limit - now


# what fails


@pytest.mark.parametrize("bad", [ModelFault("500"), "no json", CUT, REFUSAL])
def test_an_error_of_the_second_request_does_not_end_the_first(bad: Any) -> None:
    value, took, *_ = slow_value({1: (30.0, priced(1)), 2: (1.0, bad)})
    assert (value, took) == (1, 30.0)


@pytest.mark.parametrize("bad", [ModelFault("500"), "no json", CUT, REFUSAL])
def test_an_error_of_the_first_request_does_not_end_the_second(bad: Any) -> None:
    value, took, *_ = slow_value({1: (9.0, bad), 2: (30.0, priced(2))})
    assert (value, took) == (2, 38.0)


@pytest.mark.parametrize(
    ("first", "second", "raised"),
    [
        (ModelFault("first"), ModelFault("second"), ModelFault),
        (ModelFault("500"), REFUSAL, ModelRefused),
        (REFUSAL, ModelFault("500"), ModelRefused),
    ],
)
def test_if_both_fail_the_final_error_is_raised(first: Any, second: Any, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        slow_value({1: (20.0, first), 2: (20.0, second)})


@pytest.mark.parametrize("hedge_first", [False, True])
@pytest.mark.parametrize("fault", [ModelFault("500"), ModelUnusable("401")], ids=["passing", "final"])
def test_an_answer_that_cannot_be_used_counts_as_an_attempt_whatever_the_other_try_failed_of(
    fault: Exception, hedge_first: bool
) -> None:
    """Else the attempt would be made again under the same number."""

    async def scene() -> tuple[list[tuple[int, bool]], Any]:
        told: Told = {1: (20.0, fault), 2: (20.0, bad), 3: (20.0, fault), 4: (20.0, bad), 5: (1.0, priced(5))}
        if hedge_first:
            told |= {1: (20.0, bad), 2: (20.0, fault), 3: (20.0, bad), 4: (20.0, fault)}
        model = model_of(told)
        asking = virtual_client(model)
        await warm(asking)
        for invocation in ("first", "second"):
            asking.begin("run", invocation)
            with pytest.raises(AnswerMalformed):
                await asking.ask(question("slow"), "run")
        asking.begin("run", "third")
        found = await asking.ask(question("slow"), "run")
        spend = asking.ledger.total("run")
        return [(r.attempt, r.hedge) for r in found.receipts], (found.value, spend.calls, spend.cost)

    bad = Completion(text="no json", usage=PRICED)
    attempts, ended = run_virtually(scene())
    assert attempts == [(1, not hedge_first), (2, not hedge_first), (3, False)]
    assert ended == (5, 3, 0.75)


def test_an_answer_of_an_attempt_that_was_given_up_before_is_paid_all_the_same() -> None:
    async def scene() -> Any:
        asking = virtual_client(model_of({1: (500.0, GOOD), 2: (500.0, GOOD), 3: (1.0, priced(3))}))
        await warm(asking)
        given_up = asyncio.create_task(asking.ask(question("slow"), "run"))
        await asyncio.sleep(20)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await asking.ask(question("slow"), "run")
        spend = asking.ledger.total("run")
        return spend.calls, spend.cost, spend.cost_at_least

    assert run_virtually(scene()) == (3, 0.25, True)


def test_two_cut_answers_of_one_attempt_are_one_cut() -> None:
    """Else the wider retry that a cut answer is due would never be made."""

    async def scene() -> list[int]:
        model = model_of({1: (20.0, CUT), 2: (20.0, CUT), 3: (1.0, GOOD)})
        asking = virtual_client(model, max_output_tokens=100)
        await warm(asking)
        with pytest.raises(AnswerTruncated) as cut:
            await asking.ask(question("slow"), "run")
        assert cut.value.retryable
        assert (await asking.ask(question("slow"), "run")).value == 42
        assert asking.ledger.spend("run").cost == 1.0
        return [request.max_output_tokens for request in of_slow(model)]

    assert run_virtually(scene()) == [100, 100, 200]


def test_a_call_that_waits_for_a_busy_provider_is_not_slow() -> None:
    async def scene() -> int:
        inner = model_of({1: (1.0, GOOD)})
        model = FlakyModel(
            inner, lambda _, r: ModelBusy("429", 300.0) if r.prompt.item == "slow" and not busy else None
        )
        busy: list[int] = []
        asking = virtual_client(model)
        await warm(asking)
        slow = asyncio.create_task(asking.ask(question("slow"), "run"))
        await asyncio.sleep(100)
        busy.append(1)
        await slow
        return asking.ledger.calls("run")["reflect"]

    assert run_virtually(scene()) == 2


# what is booked


def test_both_requests_are_counted_and_paid_and_one_is_accepted() -> None:
    store = memory()
    _, _, asking, _ = slow_value({1: (500.0, priced(1)), 2: (3.0, priced(2))}, store)
    assert asking.ledger.calls("run")["reflect"] == 2
    assert (asking.ledger.spend("run").calls, asking.ledger.spend("run").cost) == (2, 0.5)
    assert virtual_client(ScriptedModel([]), store).ledger.total("run").cost == 0.5


def test_the_answer_of_the_loser_is_not_used_by_anybody() -> None:
    store = memory()
    slow_value({1: (500.0, priced(1)), 2: (3.0, priced(2))}, store)
    again = run_virtually(virtual_client(ScriptedModel([]), store).ask(question("slow"), "run"))
    assert again.value == 2
    assert [(r.attempt, r.accepted, r.hedge) for r in again.receipts] == [(1, True, True)]


def ended_early(end: Callable[[Client], Any]) -> tuple[Client, ScriptedModel]:
    async def scene() -> tuple[Client, ScriptedModel]:
        model = model_of({1: (500.0, priced(1)), 2: (3.0, priced(2))})
        asking = virtual_client(model)
        await warm(asking)
        await asking.ask(question("slow"), "run")
        await end(asking)
        return asking, model

    return run_virtually(scene())


def test_what_is_still_open_at_the_end_is_cancelled_and_booked_at_an_unknown_price() -> None:
    asking, model = ended_early(lambda asking: asking.settle())
    assert model.in_flight == 0
    spend = asking.ledger.spend("run")
    assert (spend.calls, spend.cost, spend.cost_at_least, spend.tokens_at_least) == (2, 0.25, True, True)


def test_settling_waits_for_nothing_and_may_be_repeated() -> None:
    async def twice(asking: Client) -> None:
        began = asking.clock()
        await asking.settle()
        await asking.settle()
        assert asking.clock() == began

    asking, _ = ended_early(twice)
    assert asking.ledger.spend("run").calls == 2


def test_a_caller_that_gives_up_ends_both_requests() -> None:
    async def scene() -> tuple[int, int]:
        model = model_of({1: (500.0, GOOD), 2: (500.0, GOOD)})
        asking = virtual_client(model)
        await warm(asking)
        slow = asyncio.create_task(asking.ask(question("slow"), "run"))
        await asyncio.sleep(20)
        assert model.in_flight == 2
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        return model.in_flight, asking.ledger.spend("run").calls

    assert run_virtually(scene()) == (0, 2)


# like any other call


def test_the_second_request_needs_a_slot() -> None:
    async def scene() -> tuple[Any, int, float]:
        model = model_of({1: (100.0, priced(1)), 2: (1.0, priced(2))})
        asking = virtual_client(model, concurrency=1, max_concurrency=1)
        await warm(asking)
        began = asking.clock()
        value = (await asking.ask(question("slow"), "run")).value
        await asyncio.sleep(1000)
        return value, len(of_slow(model)), asking.clock() - began - 1000

    assert run_virtually(scene()) == (1, 1, 100.0)


def test_a_second_request_that_still_waits_for_a_slot_when_the_first_fails_is_not_sent() -> None:
    async def scene() -> tuple[int, float]:
        model = model_of({1: (100.0, ModelTimeout("time-out")), 2: (1.0, priced(2))})
        asking = virtual_client(model, concurrency=1, max_concurrency=1)
        await warm(asking)
        began = asking.clock()
        with pytest.raises(ModelTimeout):
            await asking.ask(question("slow"), "run")
        await asyncio.sleep(1000)
        return len(of_slow(model)), asking.clock() - began - 1000

    assert run_virtually(scene()) == (1, 100.0)


def test_a_stopped_client_sends_nothing_a_second_time() -> None:
    async def scene() -> int:
        model = model_of({1: (100.0, priced(1))})
        asking = virtual_client(model)
        await warm(asking)
        slow = asyncio.create_task(asking.ask(question("slow"), "run"))
        await asyncio.sleep(1)
        asking.stop("cancelled")
        assert (await slow).value == 1
        return len(of_slow(model))

    assert run_virtually(scene()) == 1


def test_with_hedging_the_greatest_number_of_requests_is_twice_that_without() -> None:
    async def scene() -> int:
        calls = 0

        async def script(request: Request) -> Any:
            nonlocal calls
            if request.prompt.item != "slow":
                await asyncio.sleep(2.0)
                return GOOD
            calls += 1
            await asyncio.sleep(100.0)
            return ModelBusy("529")

        asking = virtual_client(ScriptedModel(script), max_waits=2)
        await warm(asking)
        with pytest.raises(ModelBusy):
            await asking.ask(question("slow"), "run")
        return calls

    assert run_virtually(scene()) == 2 * 3
