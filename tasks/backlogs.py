"""What a night does about the backlog, after its days."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger

from combee_core import backlog
from combee_core.adapters.stores import open_store
from combee_core.config import RunRequest
from combee_core.errors import BudgetSpent, CombeeError, RunStopped
from combee_core.events import event
from combee_core.outcome import with_backlog, with_note
from combee_core.records import RunResult
from combee_core.runs import run_of, runs_of
from tasks.top import top_id


class Retry:
    """A night's retry of what earlier nights have filed. The night's days stand, whatever becomes of it."""

    def __init__(self, request: RunRequest, night: RunResult) -> None:
        self._request, self._result = request, night

    def work(self) -> Iterator[RunRequest]:
        """The request that learns what waits; none where nothing does, or a cap has ended the night."""
        waiting = _due(self._request) if self._result.status != "budget" else None
        if waiting is not None:
            yield waiting

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Note an error, which has had its alarm, and go on. Raises what a person stopped, and faults of the code."""
        try:
            yield
        except BudgetSpent as spent:
            self._note(logging.WARNING, spent.facts)
            self._result = with_note(self._result, f"backlog: waits for another night: {spent.facts}", "budget")
        except RunStopped:
            raise
        except CombeeError as error:
            self._note(logging.ERROR, str(error))
            self._result = with_note(self._result, f"backlog: could not be tried again: {error}")

    def tried(self, again: RunResult) -> None:
        """Take in how it ended."""
        self._result = with_backlog(self._result, again)
        event(get_run_logger(), logging.INFO, "backlog-tried", self._result.note, run=again.run)

    def result(self) -> RunResult:
        """The night's result with what became of the backlog."""
        return self._result

    def _note(self, level: int, why: str) -> None:
        text = f"{self._request.playbook}: the days stand, the backlog waits: {why}"
        event(get_run_logger(), level, "backlog-untried", text, playbook=self._request.playbook)


def _due(request: RunRequest) -> RunRequest | None:
    """The request that learns what waits in the playbook's backlog; None where nothing does, or it was tried tonight.

    A rerun goes on with the run that it had begun.
    """
    store = open_store(request.store)
    begun = run_of(store, top_id(), "backlog")
    if begun is not None:
        return backlog.gone_on_with(begun.plan().request, request) if begun.result() is None else None
    waiting = backlog.due(store, request.playbook, {run.key for run in runs_of(store, top_id())})
    if not waiting:
        return None
    text = f"backlog: what was not learned before is tried again: {len(waiting)}"
    event(get_run_logger(), logging.INFO, "backlog", text, items=len(waiting))
    return backlog.request_of(request.model_copy(update={"store": store.uri}), waiting)
