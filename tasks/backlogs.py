"""What a night does about the backlog, after its days."""

from __future__ import annotations

import logging

from prefect import get_run_logger

from combee_core import backlog
from combee_core.adapters.stores import open_store
from combee_core.config import RunRequest
from combee_core.events import event
from combee_core.outcome import with_backlog
from combee_core.records import RunResult
from combee_core.runs import run_of, runs_of
from tasks.entry import top_id


def due(request: RunRequest) -> RunRequest | None:
    """The request that learns what waits in the playbook's backlog; None where nothing does, or it was tried tonight.

    A rerun goes on with the run that it had begun.
    """
    store = open_store(request.store)
    begun = run_of(store, top_id(), "backlog")
    if begun is not None:
        return begun.plan().request if begun.result() is None else None
    waiting = backlog.due(store, request.playbook, {run.key for run in runs_of(store, top_id())})
    if not waiting:
        return None
    text = f"backlog: what was not learned before is tried again: {len(waiting)}"
    event(get_run_logger(), logging.INFO, "backlog", text, items=len(waiting))
    return backlog.request_of(request.model_copy(update={"store": store.uri}), waiting)


def add(night: RunResult, again: RunResult | None) -> RunResult:
    """The night's result with what became of the backlog, where anything of it was tried again."""
    if again is None:
        return night
    result = with_backlog(night, again)
    event(get_run_logger(), logging.INFO, "backlog-tried", result.note, run=again.run)
    return result
