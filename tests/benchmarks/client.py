"""What a call costs the client: calls per CPU-second, against bare httpx on the same server.

Three ways to ask the same reflect questions of the simulated server over HTTP: httpx posting ready-made bodies, litellm
as it comes, and our whole client (litellm, slots, ledger, each answer saved on disk before it is used). Each way runs
in a process of its own; CPU is counted from the second hundred calls on, so that imports and first connections are left
out.

    python tests/benchmarks/client.py [--calls 2000] [--in-flight 64 512]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from common import measured, save, simulated_server

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.adapters.stores import open_store
from combee_core.calls import Prompt
from combee_core.client import Client
from combee_core.config import ModelSettings
from combee_core.errors import ModelFault
from combee_core.learners import load_learner
from combee_core.learners.ace import schemas
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.ports import Question
from combee_core.saving import SavedAnswers
from combee_core.simulation.day import day
from combee_core.simulation.world import World

MODEL = "simulated/overload"
WARM = 100
TRIES = 5
LATENCY = 1.0
Asking = Callable[[Question[Any]], Awaitable[object]]


def questions(count: int) -> list[Question[Any]]:
    """Reflect questions about a simulated day, on a playbook of a hundred bullets."""
    world, ace = World(), load_learner()
    rules = enumerate(world.specifics, start=1)
    bullets = [Bullet(id=f"calc-{n:05d}", text=str(rule)) for n, rule in rules][:100]
    book = Playbook(sections=(Section(name="FORMULAS & CALCULATIONS", bullets=tuple(bullets)),))
    return [ace.reflect(book, run) for run in day(world, count, 0)]


def body(prompt: Prompt) -> dict[str, Any]:
    """The request as every way sends it."""
    answer = {"name": "reflect", "strict": True, "schema": schemas.REFLECTOR}
    return {
        "model": MODEL,
        "messages": [message.model_dump() for message in prompt.messages],
        "max_tokens": 8192,
        "temperature": 0.0,
        "seed": 0,
        "response_format": {"type": "json_schema", "json_schema": answer},
    }


def httpx_alone(url: str, in_flight: int) -> Asking:
    """httpx and nothing else."""
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    client = httpx.AsyncClient(limits=limits, timeout=120)

    async def ask(question: Question[Any]) -> object:
        response = await client.post(f"{url}/chat/completions", json=body(question.prompt))
        return json.loads(response.json()["choices"][0]["message"]["content"])

    return ask


def litellm_alone(url: str, in_flight: int) -> Asking:
    """litellm as it comes, called as anybody would; without its look at the network for prices."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    where = {"model": f"openai/{MODEL}", "api_base": url, "api_key": "none"}

    async def ask(question: Question[Any]) -> object:
        response: Any = await litellm.acompletion(**{**body(question.prompt), **where})
        return json.loads(response.choices[0].message.content)

    return ask


def whole_client(url: str, in_flight: int) -> Asking:
    """Everything that the pipeline does with a call."""
    settings = ModelSettings(model=f"openai/{MODEL}", api_base=url, concurrency=in_flight, max_concurrency=in_flight)
    store = open_store(Path(tempfile.mkdtemp(dir=os.environ["BENCH_FOLDER"])).as_uri())
    client = Client(LitellmModel(settings.model, url), SavedAnswers(store), settings, "v1")

    async def ask(question: Question[Any]) -> object:
        return await client.ask(question, "bench")

    return ask


WAYS = {"httpx": httpx_alone, "litellm": litellm_alone, "ours": whole_client}


async def cpu_of(ask: Asking, asked: Sequence[Question[Any]], in_flight: int) -> float:
    """CPU seconds of this process for one call, with so many in flight."""
    slots = asyncio.Semaphore(in_flight)

    async def one(question: Question[Any]) -> None:
        async with slots:
            for _ in range(TRIES - 1):
                # An idle connection may be closed by the server in the moment in which it is used.
                with suppress(httpx.TransportError, ModelFault):
                    await ask(question)
                    return
            await ask(question)

    await asyncio.gather(*map(one, asked[:WARM]))
    began = time.process_time()
    await asyncio.gather(*map(one, asked[WARM:]))
    return (time.process_time() - began) / (len(asked) - WARM)


def child(way: str, url: str, in_flight: int, calls: int) -> None:
    """Measure one way and print it."""
    asked = questions(calls + WARM)
    print(json.dumps(asyncio.run(cpu_of(WAYS[way](url, in_flight), asked, in_flight))))
    sys.stdout.flush()
    os._exit(0)  # what the ways leave open at the end is not measured


def main() -> None:
    """Measure every way at every number in flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--child", nargs=2, metavar=("WAY", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child, given.in_flight[0], given.calls)
    rows = []
    with tempfile.TemporaryDirectory() as folder, simulated_server(latency=LATENCY, log=False) as server:
        for in_flight in given.in_flight:
            costs = {way: _measured(way, server.url, in_flight, given.calls, folder) for way in WAYS}
            rows += [_row(way, in_flight, cost, costs["httpx"]) for way, cost in costs.items()]
    import pandas

    save("client", pandas.DataFrame(rows), {"calls": given.calls, "latency_seconds": LATENCY})


def _measured(way: str, url: str, in_flight: int, calls: int, folder: str) -> float:
    command = [sys.executable, __file__, "--child", way, url, "--in-flight", str(in_flight), "--calls", str(calls)]
    cost = measured(command, {"BENCH_FOLDER": folder})
    if cost.code:
        raise SystemExit(f"{way} with {in_flight} in flight ended with {cost.code}")
    return float(json.loads(cost.out.splitlines()[-1]))


def _row(way: str, in_flight: int, cost: float, bare: float) -> dict[str, object]:
    return {
        "way": way,
        "in flight": in_flight,
        "CPU ms a call": cost * 1000,
        "calls a CPU-second": 1 / cost,
        "CPU ÷ httpx": cost / bare,
    }


if __name__ == "__main__":
    main()
