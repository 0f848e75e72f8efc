"""Flows run from a terminal: in this process, watched on the server, their outcome as a value."""

from __future__ import annotations

from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow

from combee_core.adapters.workshop import close
from combee_core.config import RunRequest
from combee_core.errors import UsageError
from combee_core.records import RunResult
from flows.backfill import backfill
from flows.epoch import epoch
from flows.nightly import nightly
from tasks.terminal import Outcome, outcome, ready_again, spare_the_terminal, top_run

FLOWS: dict[str, Flow[Any, RunResult]] = {"epoch": epoch, "nightly": nightly, "backfill": backfill}


def start(name: str, request: RunRequest, **more: Any) -> Outcome:
    """Run a top flow, with `more` parameters than the request; its result, and the error if it failed."""
    spare_the_terminal()
    return _run(FLOWS[name], {"request": request, **more})


def restart(flow_run_id: str) -> Outcome:
    """Run a failed or dead flow run again, under its own id. An iteration's id stands for the run that it is part of.

    Raises `UsageError` where the server knows no such run or it is not one of ours.
    """
    spare_the_terminal()
    with get_client(sync_client=True) as client:
        run = top_run(client, flow_run_id)
        flow = FLOWS.get(client.read_flow(run.flow_id).name)
        if flow is None:
            raise UsageError(f"flow run {flow_run_id} is not a run of {' or '.join(FLOWS)}")
        run = ready_again(client, run)
    return _run(flow, flow.validate_parameters(run.parameters), run)


def _run(flow: Flow[Any, RunResult], parameters: dict[str, Any], run: FlowRun | None = None) -> Outcome:
    try:
        state = run_flow(flow, flow_run=run, parameters=parameters, return_type="state")
        return outcome(state, parameters["request"])
    finally:
        close()
