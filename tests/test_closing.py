"""The orderly end of a process's calls: nothing is left open, nothing hangs, and it can begin again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import Combee, Done
from simserver import simulated_server

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, calls, client_for, close, open_workshop
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import RunStopped
from combee_core.learners import load_learner
from combee_core.ledger import Ledger
from combee_core.loop import BackgroundLoop
from combee_core.records import Batch, Item
from combee_core.runs import find_or_plan
from combee_core.simulation.day import day, day_jsonl
from combee_core.simulation.world import World
from flows.terminal import restart, start

LEARNER = load_learner("ace")
RUN = day(World(0), 1, 0)[0]


def ask(store: str, settings: RunSettings | None = None) -> Any:
    """The answer to one question, by the process's client and on its loop."""
    client = client_for(store, settings or RunSettings())
    return calls(client.ask(LEARNER.reflect(LEARNER.empty(), RUN), "run"))


def loops() -> int:
    return sum(thread.name == "combee-calls" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A process without clients, before and after."""
    close()
    yield
    close()


def test_afterwards_there_is_no_loop_and_whoever_asks_is_given_a_new_one() -> None:
    before = client_for("memory://closing", RunSettings())
    assert ask("memory://closing").value.key_insight
    assert loops() == 1
    close()
    assert loops() == 0
    assert ask("memory://closing").value.key_insight
    assert client_for("memory://closing", RunSettings()) is not before


def test_what_was_paid_is_written() -> None:
    ask("memory://closing-writes")
    close()
    assert Ledger(open_store("memory://closing-writes")).total("run").calls == 1


def test_closing_twice_or_before_the_first_call_is_fine() -> None:
    close()
    ask("memory://closing")
    close()
    close()
    assert loops() == 0


def test_a_client_that_somebody_still_holds_makes_no_call() -> None:
    held = client_for("memory://closing-held", RunSettings())
    calls(asyncio.sleep(0))
    close()
    with pytest.raises(RunStopped, match="closed"):
        calls(held.ask(LEARNER.reflect(LEARNER.empty(), RUN), "run"))


def test_a_workshop_that_was_open_is_opened_anew_with_a_client_that_may_ask(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    request = RunRequest(store=store.uri, source=Source(day=date(2026, 3, 2)))
    run = find_or_plan(store, request, [Item(id=RUN.trace_id, digest=RUN.digest)], (), 0)
    run.start_batch(Batch(number=1, trajectories=(RUN,)))
    place = Place(store=store.uri, run=run.key, number=1, invocation="flow-1")

    def work() -> Any:
        shop = open_workshop(place)
        question = shop.learner.reflect(shop.state_before(1), RUN)
        return shop.work([RUN], lambda _: shop.client.ask(question, run.key))[0]

    first = work()
    close()
    assert work().value == first.value


def test_a_call_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    with simulated_server(tmp_path, latency=600.0) as server:
        settings = RunSettings(model=ModelSettings(model="openai/simulated/overload", api_base=server.url))
        ended: list[BaseException] = []

        def hang() -> None:
            try:
                ask("memory://closing-hangs", settings)
            except BaseException as error:  # noqa: BLE001  whatever it is, it ended
                ended.append(error)

        caller = threading.Thread(target=hang, daemon=True)
        caller.start()
        while not server.stats()["running"]:
            time.sleep(0.02)
        close()
        caller.join(60)
        assert len(ended) == 1
        assert loops() == 0


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    loop, cancelled = BackgroundLoop(), threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        loop.run(forever(), 0.01)
    assert cancelled.wait(30)
    loop.close()


def test_a_loop_whose_thread_is_blocked_is_left_to_itself() -> None:
    loop, started, release = BackgroundLoop(), threading.Event(), threading.Event()

    async def block() -> None:
        started.set()
        release.wait(60)

    def call() -> None:
        with suppress(RunStopped):
            loop.run(block())

    caller = threading.Thread(target=call)
    caller.start()
    assert started.wait(30)
    loop.close(0.01)
    with pytest.raises(RunStopped):
        loop.run(asyncio.sleep(0))
    release.set()
    caller.join(30)
    loop.close()
    assert not caller.is_alive()


def complaints(done: Done) -> list[str]:
    words = ("never awaited", "unclosed", "destroyed but it is pending", "Event loop is closed", "Traceback")
    return [line for line in done.err.splitlines() if any(word.lower() in line.lower() for word in words)]


@pytest.mark.parametrize("faults", [(), ("stage=reflect,kind=401",)], ids=["sound", "wrong key"])
def test_a_command_over_http_ends_without_a_complaint(combee: Combee, tmp_path: Path, faults: tuple[str, ...]) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 8, 0, date(2026, 3, 2)))
    with simulated_server(tmp_path, faults=faults) as server:
        model = ("--model", "openai/simulated/overload", "--api-base", server.url)
        done = combee("learn", tmp_path / "day.jsonl", "--store", f"file://{tmp_path}/store", *model, "--json")
    assert done.code == (1 if faults else 0), done.err
    assert complaints(done) == []


@pytest.mark.usefixtures("prefect_api")
def test_a_run_from_a_terminal_leaves_no_loop_however_it_ends_and_another_may_follow(tmp_path: Path) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 4, 0, date(2026, 3, 2)))
    source = Source(uris=(str(tmp_path / "day.jsonl"),))
    request = RunRequest(playbook="p", store=f"file://{tmp_path}/store", source=source)
    first, error = start("epoch", request)
    assert (error, loops()) == (None, 0)
    restarted, error = restart(first.flow_run_id)
    assert (error, loops(), restarted.digest) == (None, 0, first.digest)
    nowhere = RunSettings(model=ModelSettings(model="openai/x", api_base="http://127.0.0.1:9/v1"))
    _, error = start("epoch", request.model_copy(update={"settings": nowhere, "playbook": "q"}))
    assert error is not None
    assert loops() == 0
