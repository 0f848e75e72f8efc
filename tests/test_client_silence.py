"""A model that takes calls and answers none: how long the client believes in it, on a virtual clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asking import GOOD, question, virtual_client
from virtual import clock, run_virtually

from combee_core.calls import Request
from combee_core.client import Client
from combee_core.errors import CombeeError, ModelFailing, ModelFault, ModelTimeout, ModelUnusable, RunStopped
from combee_core.liveness import GONE, QUIET, Liveness
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


# nobody is there


class Watched(ScriptedModel):
    """Hangs, but for the requests that it gives an answer to; `look` is what its preflight does."""

    def __init__(self, look: Callable[[], Awaitable[None]], script: Any = None) -> None:
        async def hang(_: Request) -> Any:
            await asyncio.sleep(TIMEOUT)
            raise ModelTimeout("time-out")

        super().__init__(script or hang, name="mute")
        self._look = look
        self.looks = 0

    async def preflight(self) -> None:
        self.looks += 1
        await self._look()


async def no_answer() -> None:
    await asyncio.sleep(3600)


async def refused() -> None:
    raise ModelUnusable("mute: connection refused by http://127.0.0.1:9/v1")


async def broken() -> None:
    raise OSError("too many open files")


async def there() -> None:
    await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("look", "looks", "cause"),
    [
        (no_answer, 2, "mute: no answer to a cheap request either"),
        (refused, 5, "mute: connection refused by http://127.0.0.1:9/v1"),
        (broken, 5, "mute: OSError: too many open files"),
    ],
)
@pytest.mark.parametrize("at_once", [1, 32])
def test_where_nobody_is_there_the_run_ends_long_before_the_first_time_out(
    look: Any, looks: int, cause: str, at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = Watched(look)
    with caplog.at_level(logging.WARNING):
        ended, seconds = night(model, at_once)
    silent = f"calls under way ({at_once}) have had no answer for 35 s"
    said = f"{cause}; {silent}; --breaker 0 waits for as long as --timeout says"
    assert {str(error) for error in ended} == {said}
    assert {type(error) for error in ended} == {ModelFailing}
    assert (seconds, model.looks, len(model.requests)) == (GONE, looks, at_once)
    assert [record.message for record in caplog.records] == [str(ended[0])]


def test_one_that_falls_silent_later_is_given_as_long_from_its_last_answer_on() -> None:
    def script(request: Request) -> Any:
        return answer_late() if request.prompt.item < "t040" else asyncio.sleep(TIMEOUT)

    async def answer_late() -> Any:
        await asyncio.sleep(7)
        return GOOD

    ended, seconds = night(Watched(no_answer, script), at_once=40)
    assert ended[:40] == [None] * 40
    assert {type(error) for error in ended[40:]} == {ModelFailing}
    assert seconds == 7 + GONE


def test_a_model_that_is_merely_slow_passes_every_look_and_loses_no_call() -> None:
    async def slow(_: Request) -> Any:
        await asyncio.sleep(TIMEOUT - 1)
        return GOOD

    model = Watched(there, slow)
    ended, seconds = night(model, at_once=100, hedge=0)
    assert not any(ended)
    assert seconds == TIMEOUT - 1
    assert model.looks == (TIMEOUT - 1) // (QUIET + 0.1)


def test_one_that_is_away_for_half_a_minute_is_waited_for() -> None:
    async def back(_: Request) -> Any:
        await asyncio.sleep(GONE - 1)
        return GOOD

    model = Watched(refused, back)
    ended, seconds = night(model, at_once=100, hedge=0)
    assert not any(ended)
    assert (seconds, model.looks) == (GONE - 1, 4)


def test_a_fallback_takes_over_at_once_from_a_model_that_is_not_there_any_more() -> None:
    second = ScriptedModel(lambda _: GOOD, name="second")
    ended, seconds = night(Watched(no_answer), other=second, fallbacks=("simulated/second",))
    assert not any(ended)
    assert seconds == GONE


def test_without_a_breaker_nobody_looks_whether_anybody_is_there() -> None:
    model = Watched(no_answer)
    ended, _ = night(model, at_once=100, breaker=0, hedge=0)
    assert {type(error) for error in ended} == {ModelTimeout}
    assert model.looks == 0


def test_a_run_that_was_stopped_stays_stopped_where_nobody_is_there() -> None:
    async def scene() -> list[BaseException | None]:
        asking = virtual_client(Watched(no_answer), concurrency=2, max_concurrency=2)
        tasks = [asyncio.create_task(asking.ask(question(f"t{n}"), "run")) for n in range(4)]
        await asyncio.sleep(1)
        asking.stop("SIGTERM")
        await asyncio.wait(tasks)
        with pytest.raises(RunStopped, match="SIGTERM"):
            await asking.ask(question("late"), "run")
        return [task.exception() for task in tasks]

    assert [type(error) for error in run_virtually(scene())] == [ModelFailing, ModelFailing, RunStopped, RunStopped]


def test_a_model_is_watched_as_long_as_calls_are_under_way_whoever_else_has_done() -> None:
    """As in a process that works on several shards: each settles the client at its end."""

    async def scene() -> tuple[float, int, int]:
        model = Watched(no_answer)
        asking = virtual_client(model)
        lost = asyncio.create_task(asking.ask(question("t1"), "run"))
        await asyncio.sleep(QUIET - 1)
        await asking.settle()
        await asyncio.wait([lost])
        ended, looks = asking.clock(), model.looks
        await asyncio.sleep(TIMEOUT)
        return ended, looks, model.looks

    assert run_virtually(scene()) == (GONE, 2, 2)


def test_a_call_that_begins_as_the_last_one_ends_is_watched_too() -> None:
    async def scene() -> float:
        liveness = Liveness("mute", no_answer, clock)
        for seconds in (QUIET + 1, TIMEOUT):
            async with liveness.call():
                await asyncio.sleep(seconds)
        return clock()

    async def ended() -> float:
        with pytest.raises(ModelFailing):
            await scene()
        return clock()

    assert run_virtually(ended()) == QUIET + 1 + GONE


def test_with_the_last_call_the_watch_ends() -> None:
    async def scene() -> list[str]:
        asking = virtual_client(ScriptedModel(lambda _: GOOD))
        await asking.ask(question("t1"), "run")
        await asyncio.sleep(0)
        return [name for task in asyncio.all_tasks() if "Liveness" in (name := task.get_coro().__qualname__)]

    assert run_virtually(scene()) == []
