"""A day's traces → epoch → the day's marker."""

from __future__ import annotations

from prefect import flow

from combee_core.config import RunRequest
from combee_core.records import RunResult
from flows.epoch import epoch
from tasks import days
from tasks.children import without_heartbeats


@flow(name="nightly", flow_run_name="nightly-{request.playbook}", persist_result=False)
def nightly(request: RunRequest) -> RunResult:
    """Learn from one day's traces: the request's day, or the day before the scheduled start in its time zone."""
    dated = days.dated(request)
    with without_heartbeats():
        result = epoch(dated)
    days.mark(dated, result)
    return result
