"""Flows run from a terminal: in this process, watched on the server, their outcome as a value."""

from __future__ import annotations

import logging
from typing import Any, cast
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.objects import State as PrefectState
from prefect.exceptions import ObjectNotFound
from prefect.flow_engine import run_flow
from prefect.states import Scheduled

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, open_workshop
from combee_core.config import RunRequest
from combee_core.errors import CombeeError, UsageError
from combee_core.records import Failure, RunResult
from combee_core.runs import run_of
from flows.epoch import epoch
from flows.nightly import nightly
from tasks import crashed
from tasks.entry import failed_result

FLOWS: dict[str, Flow[Any, RunResult]] = {"epoch": epoch, "nightly": nightly}


def start(name: str, request: RunRequest) -> tuple[RunResult, BaseException | None]:
    """Run a top flow; its result, and the error if it failed."""
    _spare_the_terminal()
    state = run_flow(FLOWS[name], parameters={"request": request}, return_type="state")
    return _outcome(state, request)


def restart(flow_run_id: str) -> tuple[RunResult, BaseException | None]:
    """Run a failed or dead flow run again, under its own id. An iteration's id stands for the run that it is part of.

    Raises `UsageError` where the server knows no such run or it is not one of ours.
    """
    _spare_the_terminal()
    with get_client(sync_client=True) as client:
        run = _top(client, flow_run_id)
        flow = FLOWS.get(client.read_flow(run.flow_id).name)
        if flow is None:
            raise UsageError(f"flow run {flow_run_id} is not a run of {' or '.join(FLOWS)}")
        crashed.mark(client, str(run.id))
        client.set_flow_run_state(run.id, Scheduled(message="combee rerun"), force=True)
        run = client.read_flow_run(run.id)
    request = RunRequest.model_validate(run.parameters["request"])
    state = run_flow(flow, flow_run=run, parameters={"request": request}, return_type="state")
    return _outcome(state, request)


def _top(client: SyncPrefectClient, flow_run_id: str) -> FlowRun:
    try:
        run = client.read_flow_run(UUID(flow_run_id))
        while run.parent_task_run_id:
            parent = client.read_task_run(run.parent_task_run_id).flow_run_id
            if parent is None:
                break
            run = client.read_flow_run(parent)
    except (ObjectNotFound, ValueError) as error:
        raise UsageError(
            f"the Prefect server knows no flow run {flow_run_id}; copy the id from the run's page"
        ) from error
    return run


def _outcome(ended: object, request: RunRequest) -> tuple[RunResult, BaseException | None]:
    state = cast(PrefectState[Any], ended)
    value = state.result(raise_on_failure=False)
    if isinstance(value, RunResult):
        return value, None
    error = value if isinstance(value, BaseException) else RuntimeError(state.message or state.name)
    flow_run_id = str(state.state_details.flow_run_id or "")
    return _failure(request, flow_run_id, error), error


def _failure(request: RunRequest, flow_run_id: str, error: BaseException) -> RunResult:
    store = open_store(request.store)
    run = run_of(store, flow_run_id) if flow_run_id else None
    if run is None:
        failure = Failure(stage="start", item="", message=str(error))
        result = RunResult(playbook=request.playbook, version=None, digest=None, error=failure)
    else:
        result = failed_result(open_workshop(Place(store=store.uri, run=run.key)), error)
    return result.model_copy(update={"flow_run_id": flow_run_id})


def _spare_the_terminal() -> None:
    """Keep the stack of an error that we raised on purpose off the terminal; the UI still has it."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return not (kind and issubclass(kind, CombeeError))
