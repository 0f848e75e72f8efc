"""Samples: problems with their expected answers, as JSON lines of `{context, target}`."""

from __future__ import annotations

from combee_core.base import content_hash
from combee_core.errors import UsageError
from combee_core.traces.jsonl import Row, records
from combee_core.traces.values import to_id
from combee_core.types import Sample, Unread

_SHAPE = '{"context": "the problem", "target": "its answer"}'


def read_samples(data: bytes, where: str) -> tuple[Sample, ...]:
    """The samples of a file in its order, a repeated one once; without an id one is named after its context.

    Raises UsageError, with the line, for a row of another shape and for an id that means two samples: unlike
    traces, samples are written by the person who runs this.
    """
    found: dict[str, Sample] = {}
    for row in records(data, where):
        if isinstance(row, Unread):
            raise UsageError(f"{row.where}: {row.reason}; a sample is a line like {_SHAPE}")
        sample = _sample(row)
        if found.setdefault(sample.id, sample) != sample:
            raise UsageError(f"{row.where}: {sample.id} is already there with another context or target")
    return tuple(found.values())


def _sample(row: Row) -> Sample:
    context, target = row.value.get("context"), row.value.get("target")
    if not isinstance(context, str) or not context.strip():
        raise UsageError(f"{row.where}: no context; a sample is a line like {_SHAPE}")
    if isinstance(target, bool) or not isinstance(target, str | int | float | None):
        raise UsageError(f"{row.where}: target is no text or number; a sample is a line like {_SHAPE}")
    name = to_id(row.value.get("id")) or f"sample-{content_hash(context)[:12]}"
    return Sample(id=name, context=context, target=None if target is None else str(target))
