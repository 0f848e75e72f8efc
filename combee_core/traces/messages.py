"""Chat messages in the OpenAI shape, made into steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from combee_core.base import clip
from combee_core.traces.values import to_text
from combee_core.types import Step, ToolCall

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}


class Conversation(NamedTuple):
    """What the agent was told once, what it was asked, and all that followed."""

    policy: str
    task: str
    steps: tuple[Step, ...]


def is_messages(value: Any) -> bool:
    """True for a non-empty list whose first entry has a known role."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and isinstance(role := first.get("role"), str) and role in _ROLES


def conversation(messages: Sequence[Any]) -> Conversation:
    """Leading system messages become the policy, the first user message the task; neither is a step too.

    Raises ValueError for an entry that is no chat message.
    """
    names: dict[str, str] = {}
    steps = [_step(message, names) for message in messages]
    start = next((i for i, step in enumerate(steps) if step.role != "system"), len(steps))
    policy = "\n\n".join(step.text for step in steps[:start])
    asked = next((i for i in range(start, len(steps)) if steps[i].role == "user"), None)
    task = "" if asked is None else steps[asked].text
    rest = tuple(step for i, step in enumerate(steps) if i >= start and i != asked)
    return Conversation(policy, task, rest)


def _step(message: Any, names: dict[str, str]) -> Step:
    """One message; `names` remembers the tool of each call id for the result that follows."""
    if not isinstance(message, dict):
        raise ValueError(f"a message is a JSON {type(message).__name__}, not an object")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ValueError(f"a message has the unknown role {clip(repr(role), 30)}")
    calls = _calls(message)
    names.update({call.id: call.name for call in calls if call.id})
    name = ""
    if _ROLES[role] == "tool":
        name = to_text(message.get("name")) or names.get(str(message.get("tool_call_id")), "")
    text = to_text(message.get("content")) or to_text(message.get("refusal"))
    return Step(role=_ROLES[role], text=text, calls=calls, name=name)


def _calls(message: dict[str, Any]) -> tuple[ToolCall, ...]:
    logged = message.get("tool_calls")
    entries = [entry for entry in logged if isinstance(entry, dict)] if isinstance(logged, list) else []
    # Before tools there was one `function_call`, without an id.
    if isinstance(legacy := message.get("function_call"), dict):
        entries.append({"function": legacy})
    return tuple(map(_call, entries))


def _call(entry: dict[str, Any]) -> ToolCall:
    for kind in ("function", "custom"):
        if isinstance(entry.get(kind), dict):
            called = entry[kind]
            arguments = called.get("arguments", called.get("input"))
            return ToolCall(
                name=to_text(called.get("name")),
                arguments="{}" if arguments is None else to_text(arguments),
                id=to_text(entry.get("id")),
            )
    return ToolCall(name=to_text(entry.get("type")), arguments=to_text(entry), id=to_text(entry.get("id")))
