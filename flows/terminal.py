"""Flows run from a terminal: in this process, watched on the server, their outcome as a value."""

from __future__ import annotations

from functools import partial
from typing import Any

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow

from combee_core.adapters.workshop import close
from combee_core.config import RunRequest
from combee_core.errors import UsageError
from combee_core.records import RunResult
from combee_core.runs import Run
from flows.backfill import backfill
from flows.epoch import epoch
from flows.measuring import profile
from flows.nightly import nightly
from tasks.signals import heeded
from tasks.terminal import (
    Change,
    Outcome,
    asked_again,
    lost,
    new_flow_run,
    outcome,
    ready_again,
    runs_of_flow,
    spare_the_terminal,
    top_run,
    unchanged,
)
from tasks.watch import watching

FLOWS: dict[str, Flow[Any, RunResult]] = {flow.name: flow for flow in (epoch, nightly, backfill, profile)}


def start(name: str, request: RunRequest, **more: Any) -> Outcome:
    """Run a top flow, with `more` parameters than the request; its result, and the error if it failed."""
    spare_the_terminal()
    flow, parameters = FLOWS[name], {"request": request, **more}
    with get_client(sync_client=True) as client:
        run = new_flow_run(client, flow, parameters)
    return _run(flow, parameters, run)


def restart(flow_run_id: str, change: Change = unchanged, planned: Run | None = None) -> Outcome:
    """Run a failed, stopped or dead flow run again, under its own id, with its settings as `change` makes them. An
    iteration's id stands for the run that it is part of.

    Where the server knows no such run, `planned` is gone on with in a new flow run; without it `UsageError` is raised,
    as for a run that is not one of ours.
    """
    spare_the_terminal()
    # Whoever has looked at the run opened it with its former settings.
    close()
    with get_client(sync_client=True) as client:
        try:
            run = top_run(client, flow_run_id)
        except UsageError:
            if planned is None:
                raise
            flow = nightly if planned.plan().request.source.day else epoch
            run = new_flow_run(client, flow, {"request": asked_again(planned, change)}, planned)
        else:
            flow = _flow_of(client, run)
            run = ready_again(client, run, change)
    return _run(flow, flow.validate_parameters(run.parameters), run)


def is_completed(flow_run_id: str) -> bool:
    """Whether a top flow run has ended well, as the server has it."""
    with get_client(sync_client=True) as client:
        state = top_run(client, flow_run_id).state
    return state is not None and state.is_completed()


def runs_of_flow_run(flow_run_id: str) -> list[Run]:
    """The runs that a flow run has worked on, in the store that it was started with. Raises `UsageError` as above."""
    with get_client(sync_client=True) as client:
        run = top_run(client, flow_run_id)
        _flow_of(client, run)
    return runs_of_flow(run)


def _flow_of(client: SyncPrefectClient, run: FlowRun) -> Flow[Any, RunResult]:
    flow = FLOWS.get(client.read_flow(run.flow_id).name)
    if flow is None:
        raise UsageError(f"flow run {run.id} is not a run of {' or '.join(FLOWS)}")
    return flow


def _run(flow: Flow[Any, RunResult], parameters: dict[str, Any], run: FlowRun) -> Outcome:
    with heeded(run.id), watching(run.id, partial(lost, run.id, parameters["request"])) as cancelled:
        try:
            state = run_flow(flow, flow_run=run, parameters=parameters, return_type="state")
            return outcome(state, parameters["request"], run.id if cancelled.is_set() else None)
        except KeyboardInterrupt as stopped:
            stopped.args = (f"stopped; what is saved stays saved, go on with: combee rerun {run.id}",)
            raise
        finally:
            close()
