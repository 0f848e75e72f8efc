"""Runs found by what a person has at hand, and how each stands."""

from __future__ import annotations

import asyncio
import re
from datetime import date

from combee_core.adapters.workshop import Place, Workshop, open_workshop
from combee_core.caps import uses
from combee_core.config import Budget, RunSettings
from combee_core.errors import UsageError
from combee_core.history import Seen, last_attempt, look, what_of
from combee_core.ports import Store
from combee_core.resuming import Reader, Standing
from combee_core.runs import Run, runs_of
from combee_core.spent import of_day, of_run, read_shares, together

_KEY = re.compile(r"[0-9a-f]{20}")


def find_runs(store: Store, run_id: str) -> list[Run]:
    """The runs that an id means: a run's own key, or the id of a flow run that worked on them; none if unknown here.

    Raises `UsageError` for a run's key that the store does not have.
    """
    if not _KEY.fullmatch(run_id):
        return runs_of(store, run_id)
    run = Run(store, run_id)
    if store.read(run.path("plan.json")) is None:
        raise UsageError(f"{store.uri} has no run {run_id}; `combee runs --store URI` lists those that a store has")
    return [run]


def standing_of(run: Run) -> Standing:
    """How far a run is, and what of its next batch is saved. Asks no model and starts nothing."""
    shop = open_workshop(Place(store=run.store.uri, run=run.key))
    result, seen = run.result(), look(run) or _unseen(shop)
    if result is not None:
        return Standing(seen=seen, version=result.version or 0)
    number, sizing, total = run.done + 1, run.sizing(), len(shop.plan.items)
    if run.waits_for_publishing:
        return Standing(seen=seen)
    if sizing is None or number > sizing.count:
        return Standing(seen=seen, later=total - sizing.part(number - 1).stop if sizing and sizing.count else total)
    part = sizing.part(number)
    standing = Standing(seen=seen, number=number, traces=part.stop - part.start, later=total - part.stop)
    batch = run.batch(number)
    if batch is None:
        return standing
    reader = Reader(shop.learner, shop.client, shop.settings, shop.scorer, run.key)
    stages = asyncio.run(reader.read(batch, shop.state_before(number)))
    return standing.model_copy(update=stages)


def with_caps(standing: Standing, run: Run, settings: RunSettings, today: date) -> Standing:
    """The standing with the caps in `settings`, and how much of each is used; `today` is the day in UTC."""
    if standing.is_finished or settings.budget == settings.day_budget == Budget():
        return standing
    own, all_of_today = (together(read_shares(run.store, place)) for place in (of_run(run.key), of_day(today)))
    return standing.model_copy(update={"caps": uses(settings, own, all_of_today), "on_budget": settings.on_budget})


def flow_run_of(run: Run) -> str:
    """The flow run that worked on a run last; empty where none is recorded."""
    attempt = last_attempt(run)
    return attempt.flow_run_id if attempt else ""


def _unseen(shop: Workshop) -> Seen:
    """A run that was planned, and nothing more."""
    plan, run = shop.plan, shop.run
    return Seen(
        run=run.key,
        state="planned",
        playbook=plan.request.playbook,
        what=what_of(plan),
        traces=len(plan.items),
        batches_done=run.done,
        batches_planned=0,
    )
