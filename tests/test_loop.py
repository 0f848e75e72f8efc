"""The background loop, used by many threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combee_core.errors import RunStopped
from combee_core.loop import BackgroundLoop

THREADS = 8


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    running = BackgroundLoop()
    yield running
    running.close()


async def echo(value: int, naps: int = 0) -> int:
    for _ in range(naps):
        await asyncio.sleep(0)
    if value < 0:
        raise ValueError(value)
    return value


def test_the_result_comes_back(loop: BackgroundLoop) -> None:
    assert loop.run(echo(7)) == 7


def test_what_a_coroutine_raises_is_raised_to_its_caller(loop: BackgroundLoop) -> None:
    with pytest.raises(ValueError, match="-1"):
        loop.run(echo(-1))
    assert loop.run(echo(1)) == 1


@given(st.lists(st.tuples(st.integers(-5, 100), st.integers(0, 4)), max_size=60))
@settings(max_examples=30)
def test_eight_threads_each_get_their_own_results_and_errors(work: list[tuple[int, int]]) -> None:
    loop = BackgroundLoop()

    def call(job: tuple[int, int]) -> int | str:
        try:
            return loop.run(echo(*job))
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(call, work))
    loop.close()
    assert results == [value if value >= 0 else str(value) for value, _ in work]


def test_all_callers_share_one_loop_and_one_thread(loop: BackgroundLoop) -> None:
    async def where() -> tuple[int, int]:
        return id(asyncio.get_running_loop()), threading.get_ident()

    with ThreadPoolExecutor(THREADS) as pool:
        places = set(pool.map(lambda _: loop.run(where()), range(50)))
    assert len(places) == 1
    assert places.pop()[1] != threading.get_ident()


def test_coroutines_of_different_threads_run_at_the_same_time(loop: BackgroundLoop) -> None:
    arrived = 0
    everyone = asyncio.Event()

    async def meet() -> int:
        nonlocal arrived
        arrived += 1
        if arrived == THREADS:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 30)
        return arrived

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(lambda _: loop.run(meet()), range(THREADS))) == [THREADS] * THREADS


def test_closing_sets_waiting_callers_free(loop: BackgroundLoop) -> None:
    started = threading.Semaphore(0)

    async def forever() -> None:
        started.release()
        await asyncio.Event().wait()

    def call(_: int) -> str:
        with pytest.raises(RunStopped) as stopped:
            loop.run(forever())
        return str(stopped.value)

    with ThreadPoolExecutor(THREADS) as pool:
        calls = [pool.submit(call, n) for n in range(THREADS)]
        assert all(started.acquire(timeout=30) for _ in range(THREADS))
        loop.close()
        assert all("closed" in call.result(30) for call in calls)


def test_a_closed_loop_takes_no_more_work_and_says_so() -> None:
    loop = BackgroundLoop()
    loop.close()
    with pytest.raises(RunStopped, match="closed"):
        loop.run(echo(1))


def test_closing_twice_is_fine() -> None:
    loop = BackgroundLoop()
    loop.run(echo(1))
    loop.close()
    loop.close()


def test_threads_that_submit_while_it_closes_are_never_left_hanging() -> None:
    for _ in range(20):
        loop = BackgroundLoop()
        gate = threading.Barrier(THREADS)

        def call(number: int, loop: BackgroundLoop = loop, gate: threading.Barrier = gate) -> int | None:
            gate.wait(30)
            if number == 0:
                loop.close()
                return None
            try:
                return loop.run(echo(number, naps=number))
            except RunStopped:
                return None

        with ThreadPoolExecutor(THREADS) as pool:
            results = [future.result(30) for future in [pool.submit(call, n) for n in range(THREADS)]]
        assert all(result in (None, number) for number, result in enumerate(results))


def test_what_ends_in_the_same_turn_as_the_loop_still_reaches_its_caller(loop: BackgroundLoop) -> None:
    busy, go_on = threading.Event(), threading.Event()

    async def hold_the_loop() -> None:
        busy.set()
        go_on.wait(30)

    with ThreadPoolExecutor(THREADS) as pool:
        holding = pool.submit(loop.run, hold_the_loop())
        assert busy.wait(30)
        waiting = [pool.submit(loop.run, echo(number)) for number in range(3)]
        time.sleep(0.1)  # they are queued, and close() behind them
        closing = pool.submit(loop.close)
        time.sleep(0.1)
        go_on.set()
        assert [future.result(30) for future in waiting] == [0, 1, 2]
        holding.result(30)
        closing.result(30)


def test_running_from_the_loops_own_thread_is_refused_instead_of_waiting_for_itself(loop: BackgroundLoop) -> None:
    async def nested() -> int:
        return loop.run(echo(1))

    with pytest.raises(RuntimeError, match="await"):
        loop.run(nested())
