"""The client: how long it waits, how often it asks, how much at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from asking import CUT, GOOD, ask, client, naps, question, run, with_retries
from hypothesis import given, settings
from hypothesis import strategies as st

from combee_core.calls import Request
from combee_core.errors import CombeeError, ModelAway, ModelBusy, ModelFault
from combee_core.testing import FlakyModel, ScriptedModel


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
    with pytest.raises(ModelAway, match=r"tomorrow.*try again after"):
        ask(asking)
    assert naps(asking) == []
    assert model.calls == 1


def test_the_waiting_budget_is_for_all_waits_of_a_call_together() -> None:
    model = FlakyModel(ScriptedModel([GOOD]), lambda *_: ModelBusy("429", 40.0))
    asking = client(model, wait_budget=100.0)
    with pytest.raises(ModelAway):
        ask(asking)
    assert len(naps(asking)) == 2


@given(retries=st.integers(0, 3), waits=st.integers(0, 4))
@settings(max_examples=25)
def test_the_greatest_number_of_requests_is_kept(retries: int, waits: int) -> None:
    model = FlakyModel(ScriptedModel([]), lambda *_: ModelBusy("529"))
    asking = client(model, retries=retries, max_waits=waits)
    with pytest.raises(ModelBusy):
        with_retries(asking, retries)
    assert model.calls == (retries + 1) * (waits + 1) <= asking.settings.most_requests


@given(
    st.lists(st.sampled_from(["busy", "fault", "cut", "bad", "good"]), max_size=40),
    st.integers(0, 3),
    st.integers(0, 3),
)
@settings(max_examples=120)
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
        asking = client(model, sleep=nap, concurrency=1, max_concurrency=1)
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
        full = asyncio.Event()

        async def slowly(_: Request) -> dict[str, int]:
            if model.in_flight == slots:
                full.set()
            await full.wait()
            await asyncio.sleep(0.005)
            return GOOD

        model = ScriptedModel(slowly)
        asking = client(model, concurrency=slots, max_concurrency=slots)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(30)))
        return model.most

    assert run(scene()) == slots
