"""Which day a night learns, and the marker that says that it did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from prefect.runtime import flow_run

from combee_core.adapters.stores import open_store
from combee_core.base import sha256
from combee_core.config import RunRequest
from combee_core.records import RunResult
from combee_core.runs import run_of
from tasks.entry import top_id


def dated(request: RunRequest) -> RunRequest:
    """The request with its day: as given, as planned before a rerun, or the local day before the scheduled start."""
    if request.source.day:
        return request
    run = run_of(open_store(request.store), top_id())
    if run:
        return run.plan().request
    start = flow_run.scheduled_start_time or datetime.now(UTC)
    day = start.astimezone(ZoneInfo(request.source.timezone)).date() - timedelta(days=1)
    return request.model_copy(update={"source": request.source.model_copy(update={"day": day})})


def mark(request: RunRequest, result: RunResult) -> None:
    """Write, once, that this day of this source was learned into this playbook."""
    source = request.source
    where = sha256(list(source.uris), source.timezone)[:16]
    key = f"days/{request.playbook}/{where}/{source.day}.json"
    open_store(request.store).create(key, result.model_dump_json(exclude={"set_aside"}).encode())
