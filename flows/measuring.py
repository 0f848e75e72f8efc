"""The batch size, measured now and not when a night finds that it must."""

from __future__ import annotations

from prefect import flow

from combee_core.config import Nights, RunRequest
from combee_core.records import RunResult
from flows.nightly import nightly
from tasks import entry, sizing
from tasks.children import without_heartbeats


@flow(name="profile", flow_run_name="profile-{request.playbook}", persist_result=False)
def profile(request: RunRequest) -> RunResult:
    """Measure anew how delays grow with the batch size, and choose the size for the nights to come.

    It learns the traces of one day (yesterday, unless the source names one), learned before or not: a batch of each
    candidate size, then the rest at the size that was chosen. What it learns is kept and published, like a night's. It
    takes 30 traces or more.

    Args:
        request: What to learn from, and how.
    """
    with without_heartbeats():
        result = nightly(sizing.anew(request), Nights(lookback=0))
    return entry.ended(entry.loud(result))
