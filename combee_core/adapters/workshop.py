"""The composition root: heavy objects built from a run's address, once a process, where they are used."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from combee_core.adapters.inputs import scorer_of
from combee_core.adapters.looping import calls as calls
from combee_core.adapters.looping import dismissed_loop, present_loop
from combee_core.adapters.models import build_model
from combee_core.adapters.stores import open_store
from combee_core.base import Noun, content_hash, is_simulated
from combee_core.client import Client
from combee_core.config import RunSettings
from combee_core.errors import CombeeError, RunStopped, StoreError
from combee_core.events import event
from combee_core.learners import load_learner
from combee_core.ports import Learner, Scorer, Store
from combee_core.publish import base_state
from combee_core.purse import Limits
from combee_core.records import Batch, Plan
from combee_core.runs import Run
from combee_core.saving import SavedAnswers
from combee_core.shards import attempt
from combee_core.simulation.specifics import Specific, stated_in
from combee_core.survival import Tell
from combee_core.types import Curated, Merged, Reflected, RolledOut
from combee_core.versions import Versions

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 10.0
"""Seconds that each step of an orderly end may take."""

WIND_DOWN = 30.0
"""Seconds that calls in flight have to end in when a run is stopped."""

_lock = threading.Lock()
_clients: list[Client] = []
_spread: dict[tuple[str, str], Workshop] = {}
"""Of each run whose tasks run in other processes too: the workshop of its latest invocation in this one."""

_log = logging.getLogger(__name__)


class Place(Noun):
    """Where a task works: a store, a run in it, a batch of that run. All that a task needs to be told.

    `invocation` names the attempt at the run that calls are counted for, in whichever process they are made.
    """

    store: str
    run: str
    number: int = 0
    invocation: str = ""


@lru_cache(maxsize=8)
def _client(store: str, settings: RunSettings) -> Client:
    learner = load_learner(settings.learner, settings.prompts)
    client = Client(
        model=build_model(settings.model),
        answers=SavedAnswers(open_store(store)),
        settings=settings.model,
        stage_version=learner.fingerprint,
        seed=settings.seed,
        limits=Limits(run=settings.budget, day=settings.day_budget, processes=settings.model.processes),
        build=build_model,
    )
    _clients.append(client)
    return client


def client_for(store: str, settings: RunSettings) -> Client:
    """The process's one client for this store and these settings; built once, whoever asks first."""
    with _lock:
        return _client(store, settings)


def stop_calls(reason: str) -> None:
    """Refuse every new call of this process; calls in flight finish and are saved.

    Other processes that work on the same runs see a mark in the store before their next shard.
    """
    with _lock:
        clients, spread = list(_clients), list(_spread.values())
    for client in clients:
        client.stop(reason)
    for shop in spread:
        shop.leave_stop(reason)


def wind_down(reason: str, seconds: float = WIND_DOWN) -> None:
    """Refuse every new call of this process; those in flight have so many seconds to end and to be saved."""
    stop_calls(reason)
    # Of this loop: whoever asks after an orderly end does so on another.
    loop = present_loop()
    if loop is not None:
        timer = threading.Timer(seconds, loop.cancel)
        timer.daemon = True
        timer.start()


def close(seconds: float = PATIENCE) -> None:
    """End this process's calls in order: what is paid is written, connections are closed, the loop is stopped.

    Nothing is waited for longer than `seconds`. Whoever asks afterwards is given a new client on a new loop.
    """
    with _lock:
        clients, loop = list(_clients), dismissed_loop()
        _clients.clear()
        _spread.clear()
        for cache in (_client, _open):
            cache.cache_clear()
    if loop is None:
        return
    try:
        loop.run(_close(clients), seconds)
    except (CombeeError, TimeoutError) as error:
        _not_closed(error or "they do not answer")
    finally:
        loop.close(seconds)


async def _close(clients: Sequence[Client]) -> None:
    for ended in await asyncio.gather(*(client.aclose() for client in clients), return_exceptions=True):
        if isinstance(ended, Exception):
            _not_closed(ended)


def _not_closed(why: object) -> None:
    event(_log, logging.WARNING, "model-not-closed", f"the model's connections could not be closed in order: {why}")


@dataclass(frozen=True)
class Workshop:
    """Everything that the stages of one run need."""

    store: Store
    run: Run
    plan: Plan
    invocation: str = ""

    @cached_property
    def settings(self) -> RunSettings:
        """The plan's settings, with place and patience as this invocation has them."""
        return self.run.settings()

    @cached_property
    def learner(self) -> Learner[Any]:
        """The plan's learner."""
        return load_learner(self.settings.learner, self.settings.prompts)

    @cached_property
    def client(self) -> Client:
        """The process's client, counting for this invocation of the run."""
        client = client_for(self.store.uri, self.settings)
        if self.invocation:
            client.begin(self.run.key, self.invocation)
            if self.settings.dask:
                with _lock:
                    _spread[self.store.uri, self.run.key] = self
        return client

    @cached_property
    def _at_once(self) -> asyncio.Semaphore:
        """Lets in twice as many items as calls can be in flight: prompts that only wait would fill the memory."""
        return asyncio.Semaphore(2 * self.settings.model.max_concurrency)

    def work(self, items: Sequence[T], ask: Callable[[T], Awaitable[R]]) -> list[R | CombeeError]:
        """Ask about all items of a shard on the process's loop: a result or an error for each, as `attempt` has it.

        Raises `RunStopped` where the invocation was stopped, in this process or another.
        """
        if not self.settings.dask:
            return calls(attempt(items, ask, self._at_once))
        self._heed_stop()
        stopped: CombeeError | None = None
        try:
            ended = calls(attempt(items, ask, self._at_once))
        except CombeeError as error:
            stopped = error
        finally:
            # The flow's process counts what this one has written down by the end of the task.
            calls(self.client.settle())
            self.client.ledger.flush(self.run.key)
        if stopped:
            raise stopped.alone()
        return [one.alone() if isinstance(one, CombeeError) else one for one in ended]

    def leave_stop(self, reason: str) -> None:
        """Leave a mark in the store for the other processes of this invocation; without the store they go on."""
        try:
            self.store.create(self._stop, reason.encode())
        except StoreError as error:
            event(_log, logging.WARNING, "stop-untold", f"workers are not told to stop: {error}", run=self.run.key)

    def _heed_stop(self) -> None:
        mark = self.store.read(self._stop) if self.invocation else None
        if mark is not None:
            # Its other shards are under way: they must not begin new calls either.
            self.client.stop(mark.data.decode())
            raise RunStopped(mark.data.decode())

    @property
    def _stop(self) -> str:
        return self.run.path(f"stop-{self.invocation}")

    @property
    def tell(self) -> Tell | None:
        """Names the rules that a text states, where they are known: in the simulated world. Else None."""
        return _rules if is_simulated(self.settings.model.model.removeprefix("openai/")) else None

    @cached_property
    def scorer(self) -> Scorer:
        """The judge of the run's samples."""
        return scorer_of(self.plan.request.source)

    @cached_property
    def versions(self) -> Versions:
        """The playbook's versions."""
        return Versions(self.store, self.plan.request.playbook)

    @property
    def tools(self) -> dict[str, Any]:
        """The keyword arguments that every stage takes."""
        return {"learner": self.learner, "client": self.client, "run": self.run.key}

    def batch(self, number: int) -> Batch:
        """The recorded batch. Raises `StoreError` before it was recorded."""
        batch = self.run.batch(number)
        if batch is None:
            raise StoreError(f"run {self.run.key} has not recorded batch {number}")
        return batch

    def state_before(self, number: int) -> Any:
        """The learner's state that batch `number` starts from."""
        return _state_before(self.store.uri, self.run.key, number)

    def task_keys(self, stage: str, number: int, items: Iterable[Any]) -> list[str]:
        """A key for each item's result: everything it depends on, and nothing that differs between processes."""
        model = [self.client.model.name, self.settings.model.identity(), self.settings.seed]
        # What another model answered in its place is not for a run that does not name that one.
        model += [one.model.name for one in self.client.candidates.at(stage)[1:]]
        state = self.learner.digest(self.state_before(number))
        # A refusal is a result too: what is tried again from the backlog must not be given the one of an earlier run.
        own = [self.run.key] if self.plan.request.source.kind == "backlog" else []
        common = content_hash(self.learner.fingerprint, model, state, _shapes(), *own)
        return [f"{stage}/{content_hash(stage, common, item)[:40]}" for item in items]


def _rules(text: str) -> set[Specific]:
    return {stated.specific for stated in stated_in(text)}


@lru_cache(maxsize=1)
def _shapes() -> str:
    """Of what tasks return: a release with other nouns must not be given the results of an older one."""
    return content_hash([noun.model_json_schema() for noun in (RolledOut, Reflected, Curated, Merged)])


@lru_cache(maxsize=4)
def _state_before(store: str, run: str, number: int) -> Any:
    workshop = open_workshop(Place(store=store, run=run))
    if number <= 1:
        return base_state(workshop.plan, workshop.versions, workshop.learner)
    before = workshop.run.state(number - 1)
    if before is None:
        raise StoreError(f"run {run} has no state after batch {number - 1}")
    return workshop.learner.load(before.state)


@lru_cache(maxsize=8)
def _open(store: str, run: str, invocation: str) -> Workshop:
    found = Run(open_store(store), run)
    return Workshop(found.store, found, found.plan(), invocation)


def open_workshop(place: Place) -> Workshop:
    """The workshop of a run. Raises `StoreError` where the store has no such run."""
    return _open(place.store, place.run, place.invocation)
