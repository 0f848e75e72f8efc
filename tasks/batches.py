"""A run's batches in order: each is recorded before it is handed out and timed while it is worked on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic

from prefect import get_run_logger

from combee_core.adapters.workshop import Place, Workshop
from combee_core.base import is_simulated
from combee_core.cutting import next_batch
from combee_core.errors import BudgetSpent
from combee_core.events import event
from combee_core.simulation.delays import minutes
from combee_core.sizes import Observation
from tasks import report
from tasks.reading import read_input
from tasks.sizing import current


def remaining(shop: Workshop, invocation: str) -> Iterator[Place]:
    """The batches that are known by now and still to be done. Raises `BudgetSpent` for a run that was ended by it."""
    if cut := shop.run.broken_off():
        raise BudgetSpent(cut.reason, "budget")
    sizing = current(shop)
    progress = report.Progress(sizing.count)
    for number in range(shop.run.done + 1, sizing.count + 1):
        progress.show(number - 1)
        if shop.run.batch(number) is None:
            found = read_input(shop.plan.request.source)
            shop.run.start_batch(next_batch(shop.plan, number, sizing, found.pick))
        _say(shop, number, sizing.count, "started")
        began, bought = monotonic(), shop.client.ledger.accepted(shop.run.key)
        yield Place(store=shop.store.uri, run=shop.run.key, number=number, invocation=invocation)
        _observe(shop, number, monotonic() - began, bought)
        _say(shop, number, sizing.count, "done", seconds=round(monotonic() - began, 3))
    progress.show(sizing.count)


def _say(shop: Workshop, number: int, of: int, what: str, **figures: float) -> None:
    part = current(shop).part(number)
    text, size = f"batch {number} of {of} {what}", part.stop - part.start
    event(get_run_logger(), logging.INFO, f"batch-{what}", text, run=shop.run.key, batch=number, items=size, **figures)


def _observe(shop: Workshop, number: int, seconds: float, bought: int) -> None:
    """Record the delay; None where answers came from the store, which would make it too short.

    `bought` are the answers that this invocation had paid for before the batch: none means that it was its first.
    """
    state = shop.run.state(number)
    if state is None:
        return
    part, cold = current(shop).part(number), not bought
    fresh = shop.client.ledger.accepted(shop.run.key) - bought >= sum(r.accepted for r in state.receipts)
    if is_simulated(shop.client.model.name):
        # The stand-in answers at once; its delays are a pure function of the records.
        seconds, cold = 60 * minutes([state.receipts], shop.settings.seed), False
    delay = seconds if fresh else None
    shop.run.observe(number, Observation(batch_size=part.stop - part.start, delay=delay, cold=cold))
