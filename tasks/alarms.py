"""Alarms at the end of a run: a log line, an event that automations can act on, an artifact, a webhook."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event
from prefect.runtime import flow_run

from combee_core.adapters import alarm_hook
from combee_core.alarms import Alarm, alarms_of, as_payload
from combee_core.config import AlarmBars, RunRequest
from combee_core.errors import CombeeError, RunError
from combee_core.events import event
from combee_core.outcome import never_begun
from combee_core.records import RunResult
from combee_core.summary import table

_LEVELS = {"warning": logging.WARNING, "error": logging.ERROR}


def sound(result: RunResult, bars: AlarmBars) -> None:
    """Raise every alarm that a result gives reason for. Trouble with one of the ways is logged, never raised."""
    alarms = alarms_of(result, bars)
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
    except CombeeError as error:
        if not error.told:
            sound(never_begun(request, error, _top_id()), request.settings.alarms)
            error.told = True
        raise
    except Exception as error:
        # A fault of the code. Whatever it is, somebody must hear of it; what it says may quote anything.
        sound(never_begun(request, RunError(type(error).__name__, "run"), _top_id()), request.settings.alarms)
        raise


def _top_id() -> str:
    return str(flow_run.root_flow_run_id or flow_run.id)


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
    rows = ((alarm.severity, alarm.kind, alarm.message) for alarm in alarms)
    shown = table(("", "alarm", "what and what to do"), rows)
    try:
        create_markdown_artifact(markdown=shown, key="alarms", description="What somebody should look at")
    except Exception as error:  # noqa: BLE001  whatever the server's client raises: an alarm must not end a run
        event(get_run_logger(), logging.WARNING, "alarm-unseen", f"no artifact: {type(error).__name__}")
