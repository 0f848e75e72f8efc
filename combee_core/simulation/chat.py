"""The OpenAI chat shape: requests read, answers and errors built. No network here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from combee_core.base import content_hash, estimate
from combee_core.calls import Message
from combee_core.errors import UsageError
from combee_core.simulation.faults import Fault
from combee_core.simulation.overload import DEFAULT_MODEL, MODELS, Curve
from combee_core.simulation.responder import answer_text
from combee_core.simulation.spoil import Choice, spoil

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}
_STATUS = {"429": "rate_limit_error", "529": "overloaded_error", "500": "server_error"}


@dataclass(frozen=True)
class Chat:
    """One request for a completion. A model name that is not simulated gets the default's curve."""

    messages: tuple[Message, ...]
    seed: int
    model: str

    @property
    def curve(self) -> Curve:
        """The curve of the model that answers."""
        return MODELS[self.model]

    @property
    def text(self) -> str:
        """The good answer."""
        return answer_text(self.messages, self.seed, self.curve)


@dataclass(frozen=True)
class Reply:
    """One HTTP answer; `status` is 200 for all that a model says, good or not."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def read_chat(body: bytes) -> Chat:
    """Read a request body. Raises `UsageError` for what is not a chat request, or asks for a stream."""
    try:
        data = json.loads(body)
    except ValueError as error:
        raise UsageError(f"the body is not JSON: {error}") from error
    rows = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise UsageError("the body has no list of messages")
    if data.get("stream"):
        raise UsageError("this server does not stream; ask without it")
    seed = data.get("seed") or 0
    if not isinstance(seed, int):
        raise UsageError(f"seed is a whole number, not {seed!r}")
    model = str(data.get("model"))
    return Chat(tuple(map(_message, rows)), seed, model if model in MODELS else DEFAULT_MODEL)


def _message(row: Mapping[str, Any]) -> Message:
    content = row.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return Message.model_validate({"role": _ROLES.get(str(row.get("role")), "user"), "content": str(content)})


def reply_to(chat: Chat, fault: Fault | None) -> Reply:
    """The answer, or what a fault makes of it."""
    kind = fault.kind if fault else ""
    if fault and kind.isdecimal():
        headers = {"retry-after": f"{fault.retry_after:g}"} if kind == "429" else {}
        return error(int(kind), f"simulated fault {kind}", _STATUS.get(kind, "simulated_error"), headers)
    return reply(200, _completion(chat, spoil(kind, chat.text)))


def error(status: int, message: str, kind: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error in the OpenAI shape."""
    return reply(status, {"error": {"message": message, "type": kind, "param": None, "code": None}}, headers)


def model_list() -> Reply:
    """The answer to `GET /models`."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "combee"} for name in MODELS]
    return reply(200, {"object": "list", "data": rows})


def _completion(chat: Chat, choice: Choice) -> dict[str, Any]:
    read, written = estimate("\n\n".join(m.content for m in chat.messages)), estimate(choice.content or "")
    message = {"role": "assistant", "content": choice.content, "refusal": choice.refusal}
    return {
        "id": f"chatcmpl-{content_hash([m.content for m in chat.messages], chat.seed)[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": chat.model,
        "choices": [{"index": 0, "finish_reason": choice.finish, "message": message, "logprobs": None}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def reply(status: int, data: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Any JSON as an answer."""
    return Reply(status, json.dumps(data).encode(), {"content-type": "application/json", **(headers or {})})
