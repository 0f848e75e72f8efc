"""A day's traces → epoch → the day's marker, after the days that were missed; then what nights before have filed."""

from __future__ import annotations

from prefect import flow

from combee_core.config import Nights, RunRequest
from combee_core.records import RunResult
from flows.epoch import epoch
from tasks import alarms, backlogs, days, entry
from tasks.children import without_heartbeats


@flow(name="nightly", flow_run_name="nightly-{request.label}", persist_result=False)
def nightly(request: RunRequest, nights: Nights = Nights()) -> RunResult:
    """Learn from one day's traces: the request's day, or the day before the scheduled start in its time zone.

    Without a day of its own the request's last days are looked at first, for what was missed or came late.
    """
    with alarms.watched(request), without_heartbeats():
        agenda = days.of_night(request, nights)
        for dated in agenda.work():
            with agenda.trying(dated):
                agenda.learned(dated, epoch(dated))
        retry = backlogs.Retry(request, agenda.result())
        for waiting in retry.work():
            with retry.trying():
                retry.tried(epoch(waiting))
    return entry.ended(entry.loud(agenda.complete(retry.result())))
