"""How each kind of fault spoils a good answer, in the shape of an OpenAI choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What a provider answers: the text, why it ended, and the refusal where there is one."""

    content: str | None
    finish: str = "stop"
    refusal: str | None = None


def spoil(kind: str, text: str) -> Choice:
    """The answer `text` after a fault of `kind`; a kind that does not touch the answer leaves it as it is."""
    return _WAYS.get(kind, Choice)(text)


def _draft(text: str) -> str:
    """An earlier version of the same object, with nothing in it: whoever takes it learns nothing."""
    data: dict[str, Any] = json.loads(text)
    return json.dumps({key: [] if isinstance(value, list) else "" for key, value in data.items()})


def _fenced(text: str) -> Choice:
    return Choice(f"Certainly, here is my answer:\n\n```json\n{text}\n```\n\nTell me if you need anything else.")


def _bare_array(text: str) -> Choice:
    data = json.loads(text)
    return Choice(json.dumps(data.get("operations", [data]), ensure_ascii=False))


def _reasoning(text: str) -> Choice:
    return Choice(f"<think>\nA first draft would be {_draft(text)}, but I can do better.\n</think>\n\n{text}")


def _reasoning_unclosed(text: str) -> Choice:
    return Choice(f"<think>\nA first draft would be {_draft(text)}, but let me check that once more. If")


_WAYS: Mapping[str, Callable[[str], Choice]] = MappingProxyType(
    {
        "truncated": lambda text: Choice(text[: len(text) // 2], finish="length"),
        "fenced": _fenced,
        "bare_array": _bare_array,
        "reasoning": _reasoning,
        "reasoning_unclosed": _reasoning_unclosed,
        "refusal": lambda text: Choice(None, refusal="I cannot help with this request."),
        "filter": lambda text: Choice(None, finish="content_filter"),
        "empty": lambda text: Choice(""),
        "malformed": lambda text: Choice(f"I would propose these changes: {text[:20]} and so on"),
    }
)
