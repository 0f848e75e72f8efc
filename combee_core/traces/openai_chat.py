"""Logs of OpenAI-style chat calls, one JSON object a line, in three shapes that may be mixed.

Fine-tuning rows `{messages}`, batch rows `{custom_id, response: {body}}` and gateway rows
`{request, response}`. A row may carry `score` or `reward`, `label`, `feedback` and `metadata` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar, TypeVar

from combee_core.base import content_hash
from combee_core.ports import ReadOptions, TraceReader
from combee_core.traces.jsonl import Row, converted, records, unread
from combee_core.traces.messages import Conversation, conversation, is_messages
from combee_core.traces.values import logged_outcome, to_id, to_metadata, to_object, to_time
from combee_core.types import TraceFile, Trajectory, Unread

_SEEN = 20
T = TypeVar("T")


class OpenAIChat:
    """Reads chat logs."""

    name: ClassVar[str] = "openai_chat"
    fallback: ClassVar[bool] = False

    def recognises(self, file: TraceFile) -> bool:
        """True if one of the first rows holds chat messages or a chat response."""
        first = islice(records(file.data, file.uri), _SEEN)
        return any(isinstance(item, Row) and _is_chat(item.value) for item in first)

    def read(self, file: TraceFile, options: ReadOptions) -> Iterator[Trajectory | Unread]:
        """Each row as one run; without an id of its own a row is named after its content."""
        return converted(records(file.data, file.uri), _run)


READER: TraceReader = OpenAIChat()


def _is_chat(row: dict[str, Any]) -> bool:
    return bool(_prompt(row)) or "choices" in _response(row)


def _run(row: Row) -> Trajectory | Unread:
    given, response = row.value, _response(row.value)
    trace_id = _first(to_id, given.get("custom_id"), given.get("id"), response.get("id"))
    trace_id = trace_id or f"chat-{content_hash(given)[:12]}"
    if not _is_chat(given):
        return unread(row.where, "no chat messages and no chat response in this row", given, trace_id)
    try:
        talk = conversation([*_prompt(given), *_answer(response)])
    except ValueError as error:
        return unread(row.where, str(error), given, trace_id)
    return _trajectory(row, trace_id, talk)


def _trajectory(row: Row, trace_id: str, talk: Conversation) -> Trajectory:
    given, response = row.value, _response(row.value)
    times = (given.get("timestamp"), given.get("created"), response.get("created"))
    return Trajectory(
        trace_id=trace_id,
        task=talk.task,
        policy=talk.policy,
        steps=talk.steps,
        outcome=logged_outcome(lambda name: _field(given, name), talk.steps, _failed(given)),
        when=_first(to_time, *times),
        source=row.where,
        metadata=to_metadata(given.get("metadata")) | _finish(response),
    )


def _failed(row: dict[str, Any]) -> bool:
    status = to_object(row.get("response")).get("status_code")
    refused = isinstance(status, int) and status >= 400
    return refused or bool(row.get("error") or _response(row).get("error"))


def _field(row: dict[str, Any], name: str) -> Any:
    return row.get("reward") if name == "score" and row.get("score") is None else row.get(name)


def _prompt(row: dict[str, Any]) -> list[Any]:
    request = to_object(row.get("request"))
    holders = (row, request, to_object(request.get("body")), to_object(row.get("body")))
    return next((holder["messages"] for holder in holders if is_messages(holder.get("messages"))), [])


def _response(row: dict[str, Any]) -> dict[str, Any]:
    response = to_object(row.get("response"))
    return to_object(response.get("body")) or response or (row if "choices" in row else {})


def _answer(response: dict[str, Any]) -> list[Any]:
    """The message of the first choice: where several were asked for, the first is what the agent used."""
    choice = _choice(response)
    return [choice["message"]] if isinstance(choice.get("message"), dict) else []


def _choice(response: dict[str, Any]) -> dict[str, Any]:
    choices = response.get("choices")
    return to_object(choices[0]) if isinstance(choices, list) and choices else {}


def _finish(response: dict[str, Any]) -> dict[str, str]:
    reason = _choice(response).get("finish_reason")
    return {"finish_reason": reason} if isinstance(reason, str) else {}


def _first(convert: Callable[[Any], T], *values: Any) -> T | None:
    """The first value that converts to something."""
    return next((found for value in values if (found := convert(value))), None)
