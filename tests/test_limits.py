"""How many calls are in flight, and how many requests and tokens a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asking import GOOD, memory, prompt, question, virtual_client
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual import clock, run_virtually

from combee_core.calls import Completion, Request, Usage
from combee_core.config import ModelSettings
from combee_core.errors import ModelBusy, ModelError
from combee_core.limits import GUESSED_OUTPUT, MINUTE, SLOW, STEADY, WINDOW, Forecast, Gate, Quota, Slots
from combee_core.testing import ScriptedModel


def answered(slots: Slots, count: int, seconds: float = 1.0, *, queued: bool = True, stage: str = "reflect") -> None:
    """So many answers to requests that were sent just now."""
    for _ in range(count):
        slots.answered(stage, seconds, cuts=slots.cuts, queued=queued)


# slots


def test_the_number_in_flight_doubles_in_a_round_trip_while_callers_wait() -> None:
    slots = Slots(32, 256)
    sizes = []
    for _ in range(4):
        answered(slots, slots.allowed)
        sizes.append(slots.allowed)
    assert sizes == [64, 128, 256, 256]


def test_without_a_queue_it_stays() -> None:
    slots = Slots(32, 256)
    answered(slots, 500, queued=False)
    assert slots.allowed == 32


def test_it_is_never_more_than_the_most_not_even_at_the_start() -> None:
    slots = Slots(40, 8)
    assert slots.allowed == 8
    answered(slots, 500)
    assert slots.allowed == 8


def test_a_429_halves_it_once_in_a_round_trip() -> None:
    slots = Slots(64, 256)
    before = slots.cuts
    for _ in range(64):
        slots.busy(cuts=before)
    assert slots.allowed == 32
    slots.busy(cuts=slots.cuts)
    assert slots.allowed == 16


def test_it_never_falls_below_one() -> None:
    slots = Slots(3, 8)
    for _ in range(20):
        slots.busy(cuts=slots.cuts)
    assert slots.allowed == 1
    answered(slots, 40)
    assert slots.allowed > 1


def test_after_a_429_it_grows_by_a_tenth_in_a_round_trip() -> None:
    slots = Slots(200, 400)
    slots.busy(cuts=0)
    answered(slots, 100)
    assert slots.allowed in (109, 110)


@pytest.mark.parametrize(
    ("times", "verdict"), [(1.0, "grows"), (STEADY - 0.1, "grows"), (STEADY + 0.3, "stays"), (SLOW + 0.4, "falls")]
)
def test_it_follows_the_latency_against_the_best_windows_median(times: float, verdict: str) -> None:
    slots = Slots(WINDOW, 10_000)
    answered(slots, WINDOW, 10.0, queued=False)
    answered(slots, WINDOW, 10.0 * times, queued=False)
    before = slots.allowed
    answered(slots, WINDOW // 2, 10.0 * times)
    found = "falls" if before < WINDOW else "grows" if slots.allowed > before else "stays"
    assert found == verdict


def test_a_slow_window_takes_a_fifth_and_ends_the_doubling() -> None:
    slots = Slots(100, 1000)
    answered(slots, WINDOW, 1.0, queued=False)
    answered(slots, WINDOW, 5.0, queued=False)
    assert slots.allowed == 80
    answered(slots, 79, 1.0)
    assert slots.allowed in (87, 88)


def test_stages_are_judged_by_themselves() -> None:
    slots = Slots(WINDOW, 1000)
    answered(slots, WINDOW, 1.0, queued=False)
    answered(slots, WINDOW * 3, 60.0, queued=False, stage="merge")
    assert slots.allowed == WINDOW


def test_latencies_of_a_fraction_of_a_second_are_noise() -> None:
    slots = Slots(WINDOW, 1000)
    answered(slots, WINDOW, 0.001, queued=False)
    answered(slots, WINDOW * 5, 0.09, queued=False)
    assert slots.cuts == 0


def test_prompts_that_grow_slowly_are_not_taken_for_a_slow_provider() -> None:
    slots = Slots(WINDOW, WINDOW)
    for window in range(300):
        answered(slots, WINDOW, 1.002**window)
    assert slots.cuts == 0


@given(st.lists(st.tuples(st.sampled_from(["answer", "busy", "stale"]), st.floats(0.001, 100)), max_size=300))
def test_it_always_stays_between_one_and_the_most(events: list[tuple[str, float]]) -> None:
    slots = Slots(8, 20)
    for kind, seconds in events:
        if kind == "answer":
            slots.answered("reflect", seconds, cuts=slots.cuts, queued=True)
        else:
            slots.busy(cuts=slots.cuts - (kind == "stale"))
        assert 1 <= slots.allowed <= 20


# quotas


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(1, 90), st.floats(0, 40), st.none() | st.integers(0, 90)), max_size=60),
)
@settings(max_examples=200)
def test_no_minute_has_more_than_the_quota(limit: int, asked: list[tuple[int, float, int | None]]) -> None:
    time = Time()
    quota, booked = Quota(limit, time), []
    for amount, idle, true in asked:
        time.now += idle
        while pause := quota.pause(amount):
            assert pause <= MINUTE + 1e-9
            time.now += pause
        booking = quota.book(amount)
        if true is not None:
            quota.correct(booking, min(true, amount))
        booked.append((time.now, amount if true is None else min(true, amount)))
        recent = [had for at, had in booked if at + MINUTE > time.now]
        assert sum(recent) <= max(limit, amount)


def test_what_fits_does_not_wait() -> None:
    quota = Quota(100, Time())
    assert [quota.pause(100), quota.pause(1000)] == [0.0, 0.0]
    quota.book(60)
    assert quota.pause(40) == 0.0
    assert quota.pause(41) == MINUTE


def test_a_correction_frees_or_takes_and_ends_with_its_minute() -> None:
    time = Time()
    quota = Quota(100, time)
    booking = quota.book(90)
    quota.correct(booking, 10)
    assert quota.pause(90) == 0.0
    quota.correct(booking, 95)
    assert quota.pause(10) == MINUTE
    time.now = MINUTE
    assert quota.pause(100) == 0.0
    quota.correct(booking, 95)
    assert quota.pause(100) == 0.0


def test_an_answer_is_expected_to_be_as_long_as_those_of_its_stage_were() -> None:
    forecast, asked = Forecast(), Request(prompt=prompt(text="x" * 400), max_output_tokens=8192)
    assert forecast.tokens(asked) == 100 + GUESSED_OUTPUT
    for written in (10, 30, None):
        forecast.learn("reflect", Usage(input_tokens=1, output_tokens=written))
    forecast.learn("merge", Usage(output_tokens=9000))
    assert forecast.tokens(asked) == 100 + 20


# all of it, through the client


def times_of(count: int, answer: Callable[[Request], Any], seconds: float = 1.0, **given: Any) -> list[float]:
    """When each of so many questions, all asked at once, was sent."""
    sent: list[float] = []

    async def script(request: Request) -> Any:
        sent.append(clock())
        await asyncio.sleep(seconds)
        return answer(request)

    async def scene() -> None:
        asking = virtual_client(ScriptedModel(script), memory(), hedge=0, **given)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(count)))

    run_virtually(scene())
    return sent


def most_in_a_minute(sent: list[float]) -> int:
    return max(sum(at <= other < at + MINUTE for other in sent) for at in sent)


def test_requests_a_minute_are_honoured() -> None:
    sent = times_of(100, lambda _: GOOD, rpm=30, concurrency=64)
    assert most_in_a_minute(sent) == 30
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(3 * MINUTE)


def test_tokens_a_minute_are_reserved_by_estimate_and_corrected_by_what_was_used() -> None:
    used = Completion(text='{"value": 1}', usage=Usage(input_tokens=2, output_tokens=98, cost=0.0))
    sent = times_of(60, lambda _: used, tpm=2000, concurrency=64)
    assert len([at for at in sent if at == 0.0]) == 2000 // (GUESSED_OUTPUT + 2)
    assert len([at for at in sent if at < MINUTE]) == 20
    assert most_in_a_minute(sent) == 20


def test_where_a_server_tells_no_usage_the_reservation_stands() -> None:
    silent = Completion(text='{"value": 1}')
    sent = times_of(8, lambda _: silent, tpm=2000, concurrency=64)
    assert most_in_a_minute(sent) == 2000 // (GUESSED_OUTPUT + 2)


def test_a_request_larger_than_a_minutes_tokens_is_sent_all_the_same() -> None:
    sent = times_of(3, lambda _: Completion(text='{"value": 1}'), tpm=100, concurrency=64)
    assert sent == [0.0, MINUTE, 2 * MINUTE]


@pytest.mark.parametrize(
    ("processes", "expected"), [(1, (30, 8)), (2, (15, 4)), (4, (7, 2)), (100, (1, 1))], ids=lambda v: str(v)
)
def test_each_of_several_processes_takes_its_part(processes: int, expected: tuple[int, int]) -> None:
    slow = times_of(40, lambda _: GOOD, seconds=100.0, processes=processes, concurrency=8, max_concurrency=8)
    assert (most_in_a_minute(times_of(40, lambda _: GOOD, processes=processes, rpm=30)), slow.count(0.0)) == expected


@pytest.mark.parametrize("given", [{"concurrency": 20}, {}], ids=["given", "by default"])
def test_more_at_the_start_than_at_most_is_no_more_than_the_most(given: dict[str, int]) -> None:
    assert times_of(40, lambda _: GOOD, max_concurrency=4, **given).count(0.0) == 4


@pytest.mark.parametrize("slots", [2, 7, 40])
def test_as_many_calls_are_sent_at_the_start_as_concurrency_says(slots: int) -> None:
    async def slowly(_: Request) -> dict[str, int]:
        await asyncio.sleep(10)
        return GOOD

    async def scene() -> int:
        model = ScriptedModel(slowly)
        asking = virtual_client(model, concurrency=slots)
        calls = [asyncio.create_task(asking.ask(question(f"t{n}"), "run")) for n in range(60)]
        await asyncio.sleep(5)
        at_the_start = len(model.requests)
        await asyncio.gather(*calls)
        return at_the_start

    assert run_virtually(scene()) == slots


def test_one_at_the_start_and_at_most_is_one_after_the_other() -> None:
    sent = times_of(20, lambda _: GOOD, seconds=7.0, concurrency=1, max_concurrency=1)
    assert sent == [7.0 * n for n in range(20)]


def test_the_client_finds_out_how_many_calls_a_provider_takes() -> None:
    """A provider that refuses more than forty at once is soon asked for about as many, and all are answered."""
    running = most = refused = 0

    async def script(_: Request) -> Any:
        nonlocal running, most, refused
        if running >= 40:
            refused += 1
            return ModelBusy("429", 1.0)
        running += 1
        most = max(most, running)
        await asyncio.sleep(5.0)
        running -= 1
        return GOOD

    async def scene() -> float:
        asking = virtual_client(ScriptedModel(script), concurrency=8, max_waits=50)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(1000)))
        return asking.clock()

    took = run_virtually(scene())
    assert most == 40
    assert refused < 250
    assert took < 2 * 1000 / 40 * 5.0


def test_the_client_stops_growing_where_answers_become_slow() -> None:
    """A server with room for fifty calls answers more of them no faster: those wait inside it."""
    running, seen = 0, []

    async def script(_: Request) -> Any:
        nonlocal running
        running += 1
        seen.append(running)
        await asyncio.sleep(2.0 * max(1.0, running / 50))
        running -= 1
        return GOOD

    async def scene() -> None:
        asking = virtual_client(ScriptedModel(script), max_concurrency=10_000)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(1500)))

    run_virtually(scene())
    assert max(seen) <= 4 * 50
    assert 50 <= max(seen[-300:]) <= 2.5 * 50


def test_a_call_that_is_cancelled_while_it_waits_leaves_no_gap() -> None:
    async def scene() -> list[str]:
        model = ScriptedModel(lambda _: asyncio.sleep(10, GOOD))
        asking = virtual_client(model, concurrency=1, max_concurrency=1)
        calls = [asyncio.create_task(asking.ask(question(f"t{n}"), "run")) for n in range(4)]
        await asyncio.sleep(5)
        calls[1].cancel()
        calls[2].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return model.items

    assert run_virtually(scene()) == ["t0", "t3"]


@given(st.lists(st.sampled_from(["good", "busy", "error", "cancelled"]), min_size=1, max_size=30), st.integers(1, 5))
@settings(max_examples=60)
def test_slots_are_given_back_whatever_happens(ends: list[str], slots: int) -> None:
    async def scene() -> None:
        gate = Gate(ModelSettings(concurrency=slots, max_concurrency=slots), clock, asyncio.sleep)
        request = Request(prompt=prompt(), max_output_tokens=1)
        inside = 0

        async def call(end: str) -> None:
            nonlocal inside
            async with gate.turn(request) as turn:
                inside += 1
                assert inside <= slots
                try:
                    await asyncio.sleep(1)
                    if end == "busy":
                        gate.busy(turn)
                    if end == "error":
                        raise ModelError
                finally:
                    inside -= 1

        calls = [asyncio.create_task(call(end)) for end in ends]
        await asyncio.sleep(0.5)
        for task, end in zip(calls, ends, strict=True):
            if end == "cancelled":
                task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.wait_for(call("good"), 2)

    run_virtually(scene())
