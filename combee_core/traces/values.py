"""Values as loggers write them, made into ours; None is "not there", which is never 0."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from combee_core.base import clip
from combee_core.traces.jsonl import parse
from combee_core.types import Outcome, Step

_INLINE_DATA = re.compile(r"data:([\w.+-]+)/([\w.+-]+)[\w;=.+-]*;base64,([A-Za-z0-9+/=_-]+)")
# No word of any language is this long.
_BARE_DATA = re.compile(r"[A-Za-z0-9+/_-]{2000,}={0,2}")
_UNITS = ("B", "kB", "MB", "GB")
# An epoch above this is in milliseconds: as seconds it would lie after the year 5000.
_MILLISECONDS = 1e11


def to_text(value: Any) -> str:
    """Readable text of a string, a list of chat parts, or any JSON; base64 becomes a note of its size."""
    if value is None:
        return ""
    if isinstance(value, str):
        shorter = _INLINE_DATA.sub(lambda found: media_note(found[1], found[2], found[3]), value)
        return _BARE_DATA.sub(lambda found: media_note("data", "base64", found[0]), shorter)
    if isinstance(value, list) and value and all(_is_part(part) for part in value):
        return "\n".join(filter(None, map(_part, value)))
    return to_text(json.dumps(value, ensure_ascii=False))


def to_id(value: Any) -> str:
    """An id on one line, at most 200 characters; empty where there is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return " ".join(str(value).split())[:200]


def to_score(value: Any) -> tuple[float | None, str]:
    """`(score, "")`, or `(None, complaint)` for what is there but is no finite number."""
    if value is None:
        return None, ""
    try:
        score = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        score = math.nan
    return (score, "") if math.isfinite(score) else (None, f"score is not a number: {clip(repr(value), 40)}")


def to_time(value: Any) -> datetime | None:
    """A moment from an epoch (seconds or milliseconds, aware) or ISO 8601 text (naive if it has no zone)."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _from_iso(value)
    try:
        return datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def to_object(value: Any) -> dict[str, Any]:
    """A JSON object, also one that was logged as text; else an empty one."""
    if isinstance(value, str):
        try:
            value = parse(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def to_metadata(value: Any) -> dict[str, str]:
    """A JSON object as text by name; anything else is nothing."""
    return {str(name): to_text(item) for name, item in value.items()} if isinstance(value, dict) else {}


def verdict(score: float | None) -> str:
    """The word `right` from 1 upwards, `wrong` from 0 downwards, none between and for no score."""
    if score is None or 0 < score < 1:
        return ""
    return "right" if score >= 1 else "wrong"


def logged_outcome(get: Callable[[str], Any], steps: tuple[Step, ...], failed: bool = False) -> Outcome:
    """The outcome that a row carries itself, under our names; `get` reads a field or gives None."""
    score, complaint = to_score(get("score"))
    feedback = to_text(get("feedback"))
    known = "reward" if score is not None else "none"
    return Outcome(
        score=score,
        label=to_text(get("label")) or complaint or verdict(score),
        feedback=feedback,
        status="no_agent_activity" if not agent_ran(steps) else "error" if failed else "finished",
        source="logged" if feedback else known,
    )


def agent_ran(steps: tuple[Step, ...]) -> bool:
    """False where the run holds nothing that the agent said or did."""
    return any(step.role == "assistant" for step in steps)


def media_note(kind: str, form: str, encoded: str) -> str:
    """`[image png 6.0 MB]` in place of base64 text."""
    size, unit = len(encoded.rstrip("=")) * 3 / 4, 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"[{kind} {form} {size:.1f} {_UNITS[unit]}]" if unit else f"[{kind} {form} {size:.0f} B]"


def _from_iso(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value.strip())
    except (AttributeError, ValueError):
        return None


def _is_part(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("type"), str))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return to_text(part)
    kind = part["type"]
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return to_text(part[name])
    if kind in ("image_url", "input_image"):
        return _image(part)
    if kind == "input_audio" and isinstance(audio := part.get(kind), dict):
        return media_note("audio", str(audio.get("format", "")), str(audio.get("data", "")))
    return "[file]" if kind in ("file", "input_file") else to_text(json.dumps(part, ensure_ascii=False))


def _image(part: dict[str, Any]) -> str:
    source = part.get("image_url")
    address = source.get("url") if isinstance(source, dict) else source
    found = _INLINE_DATA.match(address) if isinstance(address, str) else None
    return media_note(found[1], found[2], found[3]) if found else "[image]"
