"""The client's bookkeeping: in the store within a second, at every end, and not growing in memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from asking import GOOD, ask, client, memory, question, run, virtual_client
from virtual import run_virtually

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.errors import ModelFault
from combee_core.ledger import Ledger
from combee_core.loop import BackgroundLoop
from combee_core.ports import Store
from combee_core.sending import LAG
from combee_core.testing import ScriptedModel


def written(store: Store) -> int:
    """Objects of receipts."""
    return len(store.list("runs/run/receipts/"))


def test_receipts_are_in_the_store_after_a_second_however_many_calls_there_are() -> None:
    async def scene() -> tuple[int, int]:
        store = memory()
        asking = virtual_client(ScriptedModel(lambda _: asyncio.sleep(0.01, GOOD)), store)
        await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(200)))
        before = written(store)
        await asyncio.sleep(LAG)
        assert Ledger(store).total("run").calls == 200
        return before, written(store)

    assert run_virtually(scene()) == (0, 1)


def test_no_second_has_more_than_one_object() -> None:
    async def scene() -> int:
        store = memory()
        asking = virtual_client(ScriptedModel(lambda _: GOOD), store)
        for n in range(100):
            await asking.ask(question(f"t{n}"), "run")
            await asyncio.sleep(0.1)
        await asking.settle()
        return written(store)

    assert run_virtually(scene()) <= 10 / LAG + 1


@pytest.mark.parametrize("end", ["settle", "stop", "aclose", "the loop's end"])
def test_every_end_leaves_everything_written(end: str) -> None:
    store = memory()

    async def scene() -> None:
        asking = client(ScriptedModel(["no json", GOOD]), store)
        for _ in range(2):
            await asyncio.gather(asking.ask(question(), "run"), return_exceptions=True)
        if end == "stop":
            asking.stop("enough")
        elif end != "the loop's end":
            await getattr(asking, end)()

    run(scene())
    assert Ledger(store).total("run").calls == 2


def test_closing_the_background_loop_writes_what_is_open() -> None:
    store, loop = memory(), BackgroundLoop()
    asking = client(ScriptedModel([GOOD]), store)
    loop.run(asking.ask(question(), "run"))
    loop.close()
    assert Ledger(store).total("run").calls == 1


def test_requests_without_an_answer_are_seen_by_the_processes_of_the_invocation() -> None:
    store = memory()
    flow, worker = client(ScriptedModel([]), store), client(ScriptedModel([ModelFault("500"), GOOD]), store)
    for one in (flow, worker):
        one.begin("run", "tonight")
    with pytest.raises(ModelFault):
        ask(worker)
    worker.begin("run", "tonight")
    ask(worker)
    assert flow.ledger.calls("run")["reflect"] == 2
    assert flow.ledger.spend("run").calls == 1


def test_a_task_that_begins_the_same_invocation_again_does_not_undo_a_stop() -> None:
    asking = client(ScriptedModel([GOOD]))
    asking.begin("run", "tonight")
    asking.stop("cancelled")
    asking.begin("run", "tonight")
    with pytest.raises(Exception, match="cancelled"):
        ask(asking)
    asking.begin("run", "tomorrow")
    assert ask(asking).value == 42


def test_a_call_that_is_cancelled_after_it_was_sent_is_booked_at_an_unknown_price() -> None:
    async def scene() -> Client:
        asking = client(ScriptedModel(lambda _: asyncio.sleep(1000, GOOD)))
        call = asyncio.create_task(asking.ask(question(), "run"))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return asking

    spend = run(scene()).ledger.spend("run")
    assert (spend.calls, spend.cost, spend.tokens) == (1, None, None)


def test_memory_does_not_grow_with_the_texts_of_the_calls() -> None:
    """Each of these calls has a prompt and an answer of 20 kB; what stays of it is a number."""
    text = "x" * 20_000
    answer = Completion(text=f'{{"value": "{text}"}}', usage=Usage(input_tokens=1, output_tokens=1, cost=0.0))

    class Nowhere(type(memory())):  # type: ignore[misc]
        def create(self, key: str, data: bytes) -> bool:
            return True

    def script(_: Request) -> Any:
        return answer

    async def scene() -> int:
        model = ScriptedModel(script)
        asking = client(model, Nowhere("nowhere"))
        for n in range(20):
            await asking.ask(question(f"warm{n}", text), "run")
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for n in range(300):
            await asking.ask(question(f"t{n}", f"{n}{text}"), "run")
            model.requests.clear()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return grown

    assert run(scene()) < 300 * 20_000 / 10
