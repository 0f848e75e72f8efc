"""Nights of the simulated world, learned in this process with all their records, as far as a test wants."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from builders import ACE

from combee_core.adapters.inputs import load_input
from combee_core.adapters.stores import open_store
from combee_core.client import Client
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.cutting import next_batch
from combee_core.inline import Inline
from combee_core.ledger import Spend
from combee_core.outcome import finished
from combee_core.ports import Store
from combee_core.publish import base_state, publish
from combee_core.records import Sizing
from combee_core.runs import Run, find_or_plan
from combee_core.saving import SavedAnswers
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.delays import minutes
from combee_core.simulation.model import SimulatedModel
from combee_core.simulation.world import World
from combee_core.sizes import Observation
from combee_core.versions import Versions

DAY = date(2026, 3, 2)
WORLD = World(0)


def write_day(folder: Path, count: int, seed: int = 0, day: date = DAY) -> Path:
    """A file of `count` failed runs."""
    folder.mkdir(exist_ok=True)
    path = folder / f"day{seed}.jsonl"
    path.write_bytes(day_jsonl(WORLD, count, seed, day))
    return path


def asked(store: str, *paths: Path, **settings: object) -> RunRequest:
    """A request to learn from files with the stand-in."""
    source = Source(uris=tuple(map(str, paths)))
    return RunRequest(playbook="p", store=store, source=source, settings=RunSettings.model_validate(settings))


@dataclass
class Night:
    """A run that was done by hand."""

    request: RunRequest
    store: Store
    run: Run
    client: Client

    @property
    def spend(self) -> Spend:
        """What it has paid."""
        return self.client.ledger.spend(self.run.key)

    @property
    def calls(self) -> dict[str, int]:
        """Requests by stage."""
        return self.client.ledger.calls(self.run.key)

    @property
    def minutes(self) -> float:
        """Simulated minutes."""
        return minutes(state.receipts for state in self.run.states())


def learn(request: RunRequest, batches: int | None = None) -> Night:
    """Learn the request's traces; only the first `batches`, and then nothing is published."""
    store, found, settings = open_store(request.store), load_input(request.source), request.settings
    versions = Versions(store, request.playbook)
    latest = versions.latest()
    run = find_or_plan(store, request, found.items, found.unread, latest.version if latest else 0)
    assert isinstance(settings.batch_size, int)
    sizing = Sizing(total=len(found.items), batch_size=settings.batch_size, reason="as given")
    run.begin_sizing(sizing)
    client = Client(SimulatedModel(), SavedAnswers(store), settings.model, ACE.fingerprint, settings.seed)
    inline = Inline(ACE, client, settings, WORLD.score, run=run.key)
    before = run.state(run.done)
    state = ACE.load(before.state) if before else base_state(run.plan(), versions, ACE)
    # One loop for all: the client is of one.
    with asyncio.Runner() as loop:
        for number in range(run.done + 1, (sizing.count if batches is None else batches) + 1):
            batch = run.start_batch(next_batch(run.plan(), number, sizing, found.pick))
            record = run.save_state(loop.run(inline.iterate(batch, state, run.plan().base_version + 1)))
            run.observe(number, Observation(batch_size=len(batch.trajectories), delay=60 * minutes([record.receipts])))
            state = ACE.load(record.state)
    if batches is None:
        version, aside = publish(run.plan(), run.states(), versions, ACE, flow_run_id="by hand")
        run.finish(finished(run.plan(), run.states(), version, "", aside, client.ledger))
    return Night(request, store, run, client)
