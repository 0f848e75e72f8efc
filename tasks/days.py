"""Which day a night learns, and the marker that says that it did."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from prefect import get_run_logger
from prefect.runtime import flow_run

from combee_core.adapters.stores import open_store
from combee_core.base import content_hash
from combee_core.config import RunRequest
from combee_core.days import day_window, zone
from combee_core.errors import UsageError
from combee_core.records import RunResult
from combee_core.runs import run_of
from tasks.entry import top_id


def dated(request: RunRequest) -> RunRequest:
    """The request with its day: as given, as planned before a rerun, or the local day before the scheduled start.

    Raises `UsageError` for a day in the future and an unknown time zone.
    """
    if request.source.day:
        return _begun(request, request.source.day)
    run = run_of(open_store(request.store), top_id())
    if run:
        return run.plan().request
    start = flow_run.scheduled_start_time or datetime.now(UTC)
    day = start.astimezone(zone(request.source.timezone)).date() - timedelta(days=1)
    return request.model_copy(update={"source": request.source.model_copy(update={"day": day})})


def _begun(request: RunRequest, day: date) -> RunRequest:
    window, now = day_window(day, request.source.timezone), datetime.now(UTC)
    if now < window.start:
        raise UsageError(f"{day} has not begun in {request.source.timezone}; name a day that is over")
    if now < window.end:
        get_run_logger().warning("%s is not over in %s: later traces will be missing", day, request.source.timezone)
    return request


def mark(request: RunRequest, result: RunResult) -> None:
    """Write, once, that this day of this source was learned into this playbook. An empty day stays open."""
    if not result.accounting.total:
        return
    source = request.source
    where = content_hash(list(source.uris), source.timezone)[:16]
    key = f"days/{request.playbook}/{where}/{source.day}.json"
    open_store(request.store).create(key, result.model_dump_json(exclude={"set_aside"}).encode())
