"""Plain rows, one JSON object a line: `{"id", "input", "output", "score", "feedback"}`, or mapped names.

A field map tells another program's fields: `{"input": "question", "score": "eval.reward"}`. A dotted path
walks into objects and, by number, into lists. Names that are not in the map stand for themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar

from combee_core.base import clip, content_hash
from combee_core.errors import UsageError
from combee_core.ports import ReadOptions, TraceReader
from combee_core.traces.jsonl import Row, converted, records, unread
from combee_core.traces.values import logged_outcome, to_id, to_metadata, to_text, to_time
from combee_core.types import Step, TraceFile, Trajectory, Unread

NAMES = ("id", "input", "output", "score", "label", "feedback", "time", "policy", "metadata")
_EXAMPLE = '{"input": "question", "output": "answer", "score": "eval.reward"}'


class Plain:
    """Reads plain rows; asked last, because any JSON object a line could be meant."""

    name: ClassVar[str] = "plain"
    fallback: ClassVar[bool] = True

    def recognises(self, file: TraceFile) -> bool:
        """True if any line is a JSON object; only `read` knows the fields that are looked for."""
        return any(isinstance(item, Row) for item in records(file.data, file.uri))

    def read(self, file: TraceFile, options: ReadOptions) -> Iterator[Trajectory | Unread]:
        """Each row as one run. A file in which no row has input and output is of an unknown format."""
        fields = options.fields or {}
        found = (item.value for item in records(file.data, file.uri) if isinstance(item, Row))
        first = next(found, {})
        if any(_fits(row, fields) for row in chain([first], found)):
            yield from converted(records(file.data, file.uri), lambda row: _run(row, fields))
            return
        keys = clip(", ".join(first), 120)
        reason = f"unknown format: no input and output among {keys}; a field map may name them"
        yield Unread(where=file.uri, reason=reason)


READER: TraceReader = Plain()


def read_fields(data: bytes, where: str) -> dict[str, str]:
    """A field map from JSON: our names to paths in a row. Raises UsageError for anything else."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); a field map looks like {_EXAMPLE}") from error
    if not isinstance(given, dict) or not all(isinstance(path, str) and path for path in given.values()):
        raise UsageError(f"{where}: a field map is one object of names to paths, like {_EXAMPLE}")
    if unknown := sorted(set(given) - set(NAMES)):
        raise UsageError(f"{where}: unknown name {unknown[0]!r}; the names are {', '.join(NAMES)}")
    return given


def _run(row: Row, fields: Mapping[str, str]) -> Trajectory | Unread:
    given = row.value
    trace_id = to_id(_get(given, fields, "id")) or f"row-{content_hash(given)[:12]}"
    task, output = _get(given, fields, "input"), _get(given, fields, "output")
    if task is None:
        return unread(row.where, f"no {fields.get('input', 'input')} in this row", given, trace_id)
    steps = () if output is None else (Step(role="assistant", text=to_text(output)),)
    return Trajectory(
        trace_id=trace_id,
        task=to_text(task),
        policy=to_text(_get(given, fields, "policy")),
        steps=steps,
        outcome=logged_outcome(lambda name: _get(given, fields, name), steps),
        when=to_time(_get(given, fields, "time")),
        source=row.where,
        metadata=to_metadata(_get(given, fields, "metadata")),
    )


def _fits(row: dict[str, Any], fields: Mapping[str, str]) -> bool:
    output = fields.get("output", "output")
    has_output = output in row or output.split(".")[0] in row
    return has_output and _get(row, fields, "input") is not None


def _get(row: dict[str, Any], fields: Mapping[str, str], name: str) -> Any:
    """The value of our field in a row; None where it is not there."""
    if name in fields:
        return _at(row, fields[name])
    if name == "time":
        return row.get("time", row.get("timestamp", row.get("created")))
    return row.get(name)


def _at(value: Any, path: str) -> Any:
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value
