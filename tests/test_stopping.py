"""A stop reaches whoever waits: for a quota, for a slot, for a busy provider; from any thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from asking import GOOD, client, prompt, question, virtual_client
from hypothesis import given
from hypothesis import strategies as st
from virtual import clock, run_virtually

from combee_core.calls import Request
from combee_core.client import Client
from combee_core.config import ModelSettings
from combee_core.errors import ModelBusy, ModelUnusable, RunStopped
from combee_core.limits import MINUTE, Gate
from combee_core.loop import BackgroundLoop
from combee_core.stopping import Stop
from combee_core.testing import ScriptedModel


def stopped_at(second: float, model: ScriptedModel, count: int, **settings: Any) -> tuple[list[Any], float]:
    """What so many questions, asked at once, ended with when the client was stopped, and when all had ended."""

    async def scene() -> tuple[list[Any], float]:
        asking = virtual_client(model, hedge=0, **settings)
        asked = [asyncio.create_task(asking.ask(question(f"t{n}"), "run")) for n in range(count)]
        await asyncio.sleep(second)
        asking.stop("enough")
        return await asyncio.gather(*asked, return_exceptions=True), clock()

    return run_virtually(scene())


def refused(ended: list[Any]) -> int:
    return sum(isinstance(one, RunStopped) for one in ended)


def test_calls_that_wait_for_the_quota_are_refused_at_once() -> None:
    model = ScriptedModel(lambda _: asyncio.sleep(1, GOOD))
    ended, at = stopped_at(10.25, model, 300, rpm=30)
    assert (refused(ended), len(model.requests), at) == (270, 30, 10.25)


def test_what_fails_in_a_run_that_was_stopped_leaves_it_stopped() -> None:
    """As a provider that asks to wait for an hour, or a key that is refused, while the last calls are under way."""
    for wrong in (ModelBusy("later", 3600), ModelUnusable("no such key")):

        async def late(_: Request, wrong: Exception = wrong) -> Any:
            await asyncio.sleep(2)
            return wrong

        async def scene(script: Any = late) -> None:
            asking = virtual_client(ScriptedModel(script), hedge=0)
            asked = asyncio.create_task(asking.ask(question("t1"), "run"))
            await asyncio.sleep(1)
            asking.stop("enough")
            await asyncio.wait([asked])
            assert not isinstance(asked.exception(), RunStopped)
            with pytest.raises(RunStopped, match="enough"):
                await asking.ask(question("t2"), "run")

        run_virtually(scene())


def test_calls_that_wait_for_a_slot_are_refused_at_once_and_the_one_in_flight_ends() -> None:
    model = ScriptedModel(lambda _: asyncio.sleep(100, GOOD))
    ended, at = stopped_at(10.0, model, 50, concurrency=1, max_concurrency=1)
    assert (refused(ended), ended[0].value, at) == (49, 42, 100.0)


def test_a_slot_that_comes_free_later_does_not_delay_the_refusal() -> None:
    async def scene() -> float:
        model = ScriptedModel(lambda _: asyncio.sleep(100, GOOD))
        asking = virtual_client(model, concurrency=1, max_concurrency=1)
        first = asyncio.create_task(asking.ask(question("t1"), "run"))
        second = asyncio.create_task(asking.ask(question("t2"), "run"))
        await asyncio.sleep(10)
        asking.stop("enough")
        await asyncio.gather(second, return_exceptions=True)
        at = clock()
        await first
        return at

    assert run_virtually(scene()) == 10.0


def test_a_call_that_waits_for_a_busy_provider_is_refused_at_once() -> None:
    ended, at = stopped_at(5.0, ScriptedModel(lambda _: ModelBusy("429", 600.0)), 3)
    assert (refused(ended), at) == (3, 5.0)


def test_a_wrong_key_ends_all_that_wait_in_the_same_moment() -> None:
    async def wrong(_: Request) -> Any:
        await asyncio.sleep(2)
        return ModelUnusable("401")

    async def scene() -> tuple[list[Any], float]:
        asking = virtual_client(model, rpm=30)
        asked = (asking.ask(question(f"t{n}"), "run") for n in range(300))
        return await asyncio.gather(*asked, return_exceptions=True), clock()

    model = ScriptedModel(wrong)
    ended, at = run_virtually(scene())
    assert {type(one) for one in ended} == {ModelUnusable}
    assert (len(model.requests), at) == (30, 2.0)


def test_what_is_refused_takes_nothing_from_the_quota() -> None:
    async def scene() -> float:
        asking = virtual_client(ScriptedModel(lambda _: GOOD), rpm=30, tpm=30_000)
        asking.begin("run", "tonight")
        asking.stop("enough")
        many = (asking.ask(question(f"t{n}"), "run") for n in range(300))
        await asyncio.gather(*many, return_exceptions=True)
        asking.begin("run", "tomorrow")
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(30)))
        return clock()

    assert run_virtually(scene()) == 0.0


@given(st.floats(0, 5 * MINUTE), st.integers(1, 8), st.integers(1, 60))
def test_whenever_it_comes_nobody_passes_the_gate_afterwards_and_nobody_is_left_waiting(
    second: float, slots: int, rpm: int
) -> None:
    async def scene() -> None:
        gate = Gate(ModelSettings(concurrency=slots, max_concurrency=slots, rpm=rpm), clock, asyncio.sleep)
        passed: list[float] = []

        async def call() -> None:
            async with gate.turn(Request(prompt=prompt(), max_output_tokens=1)):
                passed.append(clock())
                await asyncio.sleep(7)

        asked = [asyncio.create_task(call()) for _ in range(100)]
        await asyncio.sleep(second)
        gate.stop.set(RunStopped("enough"))
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert len(passed) == sum(one is None for one in ended)
        assert all(at <= second for at in passed)
        assert clock() <= second + 7

    run_virtually(scene())


def test_it_wakes_a_loop_that_runs_in_another_thread() -> None:
    loop, stop, waiting = BackgroundLoop(), Stop(), threading.Event()

    async def wait() -> str:
        forever = asyncio.get_running_loop().create_future()
        waiting.set()
        with suppress(RunStopped):
            await stop.wait(forever)
        return "woken"

    def set_when_it_waits() -> None:
        waiting.wait(30)
        stop.set(RunStopped("enough"))

    thread = threading.Thread(target=set_when_it_waits)
    thread.start()
    assert loop.run(wait(), 30) == "woken"
    thread.join()
    loop.close()


def test_what_is_awaited_is_given_back_and_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def scene() -> set[asyncio.Task[Any]]:
        stop = Stop()
        await stop.wait(asyncio.sleep(3))
        assert clock() == 3.0
        waits = asyncio.create_task(stop.wait(asyncio.sleep(1000)))
        await asyncio.sleep(1)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        stop.set(RunStopped("enough"))
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    assert run_virtually(scene()) == set()


def test_a_closed_client_refuses_calls_until_it_begins_again() -> None:
    async def scene() -> Client:
        asking = client(ScriptedModel([GOOD]))
        await asking.aclose()
        with pytest.raises(RunStopped, match="closed"):
            await asking.ask(question(), "run")
        asking.begin("run")
        assert (await asking.ask(question(), "run")).value == 42
        return asking

    asyncio.run(scene())
