"""What a flow run from a terminal needs besides: its place on the server, its outcome as a value, a quiet log."""

from __future__ import annotations

import logging
from typing import Any, cast
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.objects import State as PrefectState
from prefect.exceptions import ObjectNotFound
from prefect.states import Scheduled

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, open_workshop
from combee_core.config import RunRequest
from combee_core.errors import CombeeError, UsageError
from combee_core.nights import noted_days
from combee_core.outcome import never_begun
from combee_core.records import RunResult
from combee_core.runs import run_of
from tasks import crashed
from tasks.entry import failed_result

Outcome = tuple[RunResult, BaseException | None]


def top_run(client: SyncPrefectClient, flow_run_id: str) -> FlowRun:
    """The flow run itself, or the one on top that it is part of. Raises `UsageError` where the server knows none."""
    try:
        run = client.read_flow_run(UUID(flow_run_id))
        while run.parent_task_run_id:
            parent = client.read_task_run(run.parent_task_run_id).flow_run_id
            if parent is None:
                break
            run = client.read_flow_run(parent)
    except (ObjectNotFound, ValueError) as error:
        raise UsageError(f"the Prefect server knows no flow run {flow_run_id}; copy the id from its page") from error
    return run


def ready_again(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    """The same flow run, scheduled anew; what was left of it as Running is marked Crashed.

    Raises `RunHeld` while a live process works on it.
    """
    store = open_store(RunRequest.model_validate(run.parameters["request"]).store)
    planned = run_of(store, str(run.id))
    if planned is not None:
        with store.lease(planned.path("owner"), "combee rerun"):
            pass
    crashed.mark(client, str(run.id))
    client.set_flow_run_state(run.id, Scheduled(message="combee rerun"), force=True)
    return client.read_flow_run(run.id)


def outcome(ended: object, request: RunRequest) -> Outcome:
    """A flow's final state as its result, and the error if it failed."""
    state = cast(PrefectState[Any], ended)
    value = state.result(raise_on_failure=False)
    if isinstance(value, RunResult):
        return value, None
    error = value if isinstance(value, BaseException) else RuntimeError(state.message or state.name)
    flow_run_id = str(state.state_details.flow_run_id or "")
    return _failure(request, flow_run_id, error), error


def _failure(request: RunRequest, flow_run_id: str, error: BaseException) -> RunResult:
    try:
        store = open_store(request.store)
        run = run_of(store, flow_run_id) if flow_run_id else None
        begun = run is not None and run.result() is None
        known = failed_result(open_workshop(Place(store=store.uri, run=run.key)), error) if run and begun else None
        days = noted_days(store, flow_run_id)
    except CombeeError:
        # The store itself may be what failed; the error that is reported says so.
        known, days = None, ()
    result = known or never_begun(request, error)
    return result.model_copy(update={"flow_run_id": flow_run_id, "days": days})


def spare_the_terminal() -> None:
    """Keep off the terminal what the UI shows better: a line for each task, and stacks of errors raised on purpose."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    expected = kind is not None and issubclass(kind, CombeeError)
    return not expected and (record.levelno > logging.INFO or record.name != "prefect.task_runs")
