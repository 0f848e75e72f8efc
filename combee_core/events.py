"""Log lines as events: each has a name and fields besides its sentence, and no text of a trace or of an answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Log = logging.Logger | logging.LoggerAdapter[Any]

_FROM_PREFECT = ("flow_run_id", "flow_run_name", "task_run_id", "task_run_name")
_ITEMS = 20


def event(log: Log, level: int, name: str, text: str, **fields: Any) -> None:
    """Log `text` as the event `name`. Fields are JSON-able: run, batch, stage, items, counts; None is left out."""
    log.log(level, "%s", text, extra={"event": name, "fields": fields})


def some(items: Sequence[str], most: int = _ITEMS) -> list[str]:
    """The first items, and how many more there are: a line must stay a line."""
    return list(items) if len(items) <= most else [*items[:most], f"… and {len(items) - most} more"]


class JsonLines(logging.Formatter):
    """One JSON object a record: time (UTC), level, event, message and the event's fields.

    What other libraries log has their logger's name as its event. Stacks are left out, since what an error came from
    may quote anything; its kind is in `error`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        data = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            **_given(record, _FROM_PREFECT),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[0]:
            data["error"] = record.exc_info[0].__name__
        return json.dumps(
            {name: value for name, value in data.items() if value is not None}, ensure_ascii=False, default=str
        )


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _given(record: logging.LogRecord, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: str(value) for name in names if (value := getattr(record, name, None))}
