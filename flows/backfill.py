"""The days of a range in order, each an epoch that builds on those before it."""

from __future__ import annotations

from typing import Annotated

from prefect import flow

from combee_core.base import Unasked
from combee_core.config import DateRange, RunRequest
from combee_core.records import RunResult
from flows.epoch import epoch
from tasks import alarms, entry
from tasks import days as its_days
from tasks.children import without_heartbeats


@flow(name="backfill", flow_run_name="backfill-{request.playbook}", persist_result=False)
def backfill(
    days: DateRange,
    request: Annotated[RunRequest, Unasked("source", "day")],
    force: bool = False,
    independent: bool = False,
) -> RunResult:
    """Learn every day of a range that was not learned yet.

    Args:
        days: The first and the last day, in the source's time zone.
        request: What to learn from, and how.
        force: Learn the days anew, whether they were learned or not.
        independent: Learn every day from the version that is the latest now, so that no day reads another's lessons.
    """
    with alarms.watched(request), without_heartbeats():
        agenda = its_days.of_backfill(request, days, force=force or request.again, independent=independent)
        for dated in agenda.work():
            with agenda.trying(dated):
                agenda.learned(dated, epoch(dated))
    return entry.ended(entry.loud(agenda.complete(agenda.result())))
