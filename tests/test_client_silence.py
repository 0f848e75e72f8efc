"""A model that takes calls and answers none: how long the client believes in it, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asking import GOOD, question, virtual_client
from virtual import run_virtually

from combee_core.calls import Request
from combee_core.client import Client
from combee_core.errors import CombeeError, ModelFailing, ModelFault, ModelTimeout
from combee_core.testing import ScriptedModel

TIMEOUT, BREAKER, RETRIES = 300.0, 20, 3
Answers = Callable[[Request], bool]


def hanging(*, but: Answers = lambda _: False, after: float = 1.0, answer: Any = GOOD) -> ScriptedModel:
    """Times out at every request, but for those that it gives an answer to."""

    async def script(request: Request) -> Any:
        if but(request):
            await asyncio.sleep(after)
            return answer
        await asyncio.sleep(request.timeout)
        raise ModelTimeout("time-out: no whole answer")

    return ScriptedModel(script, name="mute")


async def asked_often(asking: Client, item: str) -> CombeeError | None:
    """The item's last error, asked for as often as a task may; None for an answer."""
    error: CombeeError | None = None
    for _ in range(RETRIES + 1):
        try:
            await asking.ask(question(item), "run")
            return None
        except CombeeError as failed:
            error = failed
            if not failed.retryable:
                break
    return error


def night(
    model: ScriptedModel, at_once: int = 32, other: ScriptedModel | None = None, **settings: Any
) -> tuple[list[CombeeError | None], float]:
    """What became of a hundred items, and after how many seconds; `other` is what a fallback is."""

    async def scene() -> tuple[list[CombeeError | None], float]:
        limits = {"concurrency": at_once, "max_concurrency": at_once, "timeout": TIMEOUT, "retries": RETRIES}
        asking = virtual_client(model, build=lambda _: other, **{**limits, "breaker": BREAKER, **settings})
        ended = await asyncio.gather(*(asked_often(asking, f"t{n:03d}") for n in range(100)))
        return ended, asking.clock()

    return run_virtually(scene())


@pytest.mark.parametrize(("at_once", "rounds"), [(100, 2), (32, 2), (20, 2), (8, 4), (1, 21)])
def test_a_model_that_hangs_ends_the_run_after_as_many_time_outs_as_the_breaker_has(at_once: int, rounds: int) -> None:
    """And one round more, for what had been sent by then."""
    model = hanging()
    ended, seconds = night(model, at_once)
    assert {type(error) for error in ended} == {ModelFailing}
    assert "20 × ModelTimeout: time-out: no whole answer" in str(ended[-1])
    assert seconds == rounds * TIMEOUT
    assert len(model.requests) <= rounds * at_once


def test_one_that_hangs_in_the_middle_of_a_night_does_so_too_and_second_requests_do_not_double_the_time() -> None:
    begun = hanging(but=lambda request: request.prompt.item < "t040")
    ended, seconds = night(begun, hedge=4.0)
    assert [error for error in ended[:40] if error] == []
    assert {type(error) for error in ended[40:]} == {ModelFailing}
    assert TIMEOUT < seconds < 2.1 * TIMEOUT


@pytest.mark.parametrize("sign", [GOOD, ModelFault("500")])
def test_time_outs_count_only_once_retries_are_spent_where_the_model_still_speaks(sign: Any) -> None:
    """As from a server that takes one call after the other: who is last in its queue waits too long."""
    slow = hanging(but=lambda request: request.prompt.item < "t010", after=TIMEOUT - 1, answer=sign)
    ended, seconds = night(slow, at_once=100, hedge=0)
    assert not any(isinstance(error, ModelFailing) for error in ended[:10])
    assert seconds > 2 * TIMEOUT, "the first round is not held against it"


def test_without_a_breaker_every_call_has_all_its_retries() -> None:
    model = hanging()
    ended, seconds = night(model, at_once=100, breaker=0, hedge=0)
    assert {type(error) for error in ended} == {ModelTimeout}
    assert (len(model.requests), seconds) == (400, 4 * TIMEOUT)


def test_a_fallback_takes_over_from_a_model_that_hangs_once_the_breaker_has_tripped() -> None:
    second = ScriptedModel(lambda _: GOOD, name="second")
    ended, seconds = night(hanging(), other=second, fallbacks=("simulated/second",))
    assert not any(ended)
    assert len(second.requests) == 100
    assert seconds <= 2 * TIMEOUT
