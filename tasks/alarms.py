"""Alarms at the end of a run: a log line, an event that automations can act on, an artifact, a webhook."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event

from combee_core.adapters import alarm_hook
from combee_core.alarms import Alarm, alarms_of, as_list, as_payload
from combee_core.config import AlarmBars, RunRequest
from combee_core.errors import CombeeError, RunError, is_told, mark_told
from combee_core.events import event
from combee_core.outcome import never_begun
from combee_core.records import RunResult
from tasks.top import top_id

_LEVELS = {"warning": logging.WARNING, "error": logging.ERROR}


def sound(result: RunResult, bars: AlarmBars, *, again: bool = False) -> None:
    """Raise every alarm that a result gives reason for; `again` where its traces were told of before.

    Trouble with one of the ways is logged, never raised.
    """
    alarms = alarms_of(result, bars, again=again)
    for alarm in alarms:
        payload = as_payload(alarm, result)
        fields = {name: value for name, value in payload.items() if name not in ("message", "severity")}
        event(get_run_logger(), _LEVELS[alarm.severity], "alarm", alarm.message, **fields)
        _post(payload)
        _emit(alarm, result, payload)
    if alarms:
        _show(alarms)


@contextmanager
def watched(request: RunRequest) -> Iterator[None]:
    """Raise an alarm for an error inside, unless one was raised for it further in; then raise the error as it is."""
    try:
        yield
    except Exception as error:
        # Whatever it is, somebody must hear of it.
        if not is_told(error):
            sound(never_begun(request, _sayable(error), top_id()), request.settings.alarms)
            mark_told(error)
        raise


def _sayable(error: Exception) -> CombeeError:
    """The error, or for a fault of the code its kind alone: what that says may quote anything."""
    return error if isinstance(error, CombeeError) else RunError(type(error).__name__, "run")


def _emit(alarm: Alarm, result: RunResult, payload: dict[str, object]) -> None:
    resource = {
        "prefect.resource.id": f"combee.playbook.{result.playbook}",
        "prefect.resource.name": result.playbook,
        "combee.alarm.severity": alarm.severity,
        "combee.alarm.message": alarm.message,
    }
    emit_event(f"combee.alarm.{alarm.kind}", resource=resource, related=_related(result), payload=payload)


def _related(result: RunResult) -> list[dict[str, str]]:
    about = {"prefect.resource.id": f"prefect.flow-run.{result.flow_run_id}", "prefect.resource.role": "flow-run"}
    return [about] if result.flow_run_id else []


def _post(payload: dict[str, object]) -> None:
    url = alarm_hook.hook_url()
    if url is None:
        return
    try:
        alarm_hook.post(url, payload)
    except CombeeError as error:
        event(get_run_logger(), logging.WARNING, "alarm-unsent", str(error), kind=payload["kind"])


def _show(alarms: tuple[Alarm, ...]) -> None:
    try:
        create_markdown_artifact(markdown=as_list(alarms), key="alarms", description="What somebody should look at")
    except Exception as error:  # noqa: BLE001  whatever the server's client raises: an alarm must not end a run
        event(get_run_logger(), logging.WARNING, "alarm-unseen", f"no artifact: {type(error).__name__}")
