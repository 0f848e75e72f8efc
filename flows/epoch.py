"""One pass over the input: its batches in order, each building on the one before, then one published version."""

from __future__ import annotations

from prefect import flow
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from combee_core.config import RunRequest
from combee_core.records import RunResult
from flows.iteration import iteration
from tasks import entry


@flow(name="epoch", flow_run_name="epoch-{request.playbook}", persist_result=False)
def epoch(request: RunRequest) -> RunResult:
    """Learn from traces or samples. A finished plan is a no-op; an unfinished one is gone on with.

    Raises `RunError` naming the stage and item that failed; then nothing is published.
    """
    opened = entry.open_run(request)
    if opened.done:
        return entry.recorded(opened)
    with entry.held(opened) as shop:
        for place in entry.remaining(shop):
            # Joining a child's heartbeat thread costs a second; the top run keeps its own.
            with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
                iteration(place, opened.results)
        return entry.finish(shop)
