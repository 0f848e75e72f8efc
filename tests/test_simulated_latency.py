"""How long the simulated server says that a call takes, and when its log says that it was."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

from builders import ACE
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import EMPTY, failed

from combee_core.calls import Message
from combee_core.simulation.asked import asked
from combee_core.simulation.call_log import CallLog
from combee_core.simulation.chat import Chat
from combee_core.simulation.provider import Provider

MEDIAN = 5.0
SIGMA = 0.5
numbers = st.integers(1, 10_000)
texts = st.text(max_size=20)


def provider(latency: float = MEDIAN, sigma: float = SIGMA, seed: int | None = None) -> Provider:
    return Provider(CallLog(lambda: 0.0), latency=latency, latency_sigma=sigma, latency_seed=seed)


def chat(text: str, seed: int = 0) -> Chat:
    return Chat((Message(role="user", content=text),), seed, "simulated/overload")


@given(texts, numbers, numbers)
def test_without_a_seed_a_call_takes_as_long_whichever_it_is(text: str, one: int, other: int) -> None:
    assert provider().seconds(chat(text), one) == provider().seconds(chat(text), other)


@given(texts, texts, numbers, st.integers())
def test_with_a_seed_the_same_call_takes_as_long_whatever_it_asks(one: str, other: str, n: int, seed: int) -> None:
    assert provider(seed=seed).seconds(chat(one), n) == provider(seed=seed).seconds(chat(other, seed=3), n)


def test_other_prompts_other_calls_and_other_seeds_take_another_time() -> None:
    by_prompt = {provider().seconds(chat(str(n)), 1) for n in range(50)}
    by_call = {provider(seed=1).seconds(chat(""), n) for n in range(50)}
    by_seed = {provider(seed=n).seconds(chat(""), 1) for n in range(50)}
    again = {provider().seconds(chat("", seed=n), 1) for n in range(50)}
    assert [len(by_prompt), len(by_call), len(by_seed), len(again)] == [50, 50, 50, 50]


@given(texts, numbers)
def test_without_spread_every_call_takes_the_latency(text: str, n: int) -> None:
    assert provider(sigma=0).seconds(chat(text), n) == provider(sigma=0, seed=7).seconds(chat(text), n) == MEDIAN


def test_delays_are_lognormal_around_the_latency() -> None:
    seconds = [provider(seed=1).seconds(chat(""), n) for n in range(1, 2_001)]
    logs = [math.log(one / MEDIAN) for one in seconds]
    assert abs(statistics.median(logs)) < 0.03
    assert abs(statistics.stdev(logs) - SIGMA) < 0.03


def test_the_log_says_when_a_call_began_and_ended(tmp_path: Path) -> None:
    times = iter([100.0, 100.0, 107.5, 109.0, 109.0, 109.25])
    log = CallLog(lambda: next(times), tmp_path / "calls.jsonl")
    for _ in range(2):
        call = log.start(asked(ACE.reflect(EMPTY, failed(0)).prompt.messages))
        log.end(call, 200, fault=False)
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [(line["event"], line["at"], line["seconds"]) for line in lines] == [
        ("start", 100.0, 0.0),
        ("end", 107.5, 7.5),
        ("start", 109.0, 0.0),
        ("end", 109.25, 0.25),
    ]
