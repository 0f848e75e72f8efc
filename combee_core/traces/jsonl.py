"""Bytes that may be JSON, read without trust.

Loggers cut lines, glue records together, leave runs of NUL after a crash and halves of emojis after a
truncation. Whatever can be read is read; the rest is named by line. Nothing here raises on content.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from combee_core.base import content_hash, whole
from combee_core.types import Trajectory, Unread

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PADDING = "\0\ufeff \t\r\n"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Raw control characters inside strings are against the standard and common in logs.
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Row:
    """One JSON object and where it was found."""

    where: str
    value: dict[str, Any]


def decode(data: bytes) -> str:
    """Text of UTF-8 or, where a byte order mark says so, UTF-16; unreadable bytes become `�`."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def parse(text: str) -> Any:
    """The JSON value of a text. Raises ValueError or RecursionError."""
    value, end = _scan(text, 0)
    if text[end:].strip(_PADDING):
        raise ValueError("something follows the JSON value")
    return value


def records(data: bytes, uri: str) -> Iterator[Row | Unread]:
    """The objects of JSON lines, or of one JSON array: many programs export the same rows either way."""
    text = decode(data).strip(_PADDING)
    is_array = text.startswith("[") and text.endswith("]")
    return elements(data, uri) if is_array else rows(data, uri)


def rows(data: bytes, uri: str) -> Iterator[Row | Unread]:
    """Each JSON object of a text that holds one a line; what is no object is an `Unread` with its line."""
    # Not splitlines(): U+2028 and its kin are legal inside JSON strings.
    for number, line in enumerate(decode(data).split("\n"), start=1):
        text = line.strip(_PADDING)
        if text:
            yield from _records(text, f"{uri}:{number}")


def elements(data: bytes, uri: str) -> Iterator[Row | Unread]:
    """Each object of a text that is one JSON array, as far as it can be read; `where` is `uri#index`."""
    text = decode(data).lstrip(_PADDING)
    if not text.startswith("["):
        return
    position, index = _skip(text, 1), 0
    while position < len(text) and text[position] != "]":
        where = f"{uri}#{index}"
        try:
            value, position = _scan(text, position)
        except (ValueError, RecursionError) as error:
            yield unread(where, f"cut or damaged from here on: {_why(error)}", text[position:])
            return
        yield _row(value, where)
        position, index = _skip(text, position), index + 1
    if position >= len(text):
        yield unread(uri, "the array is not closed: the file may be cut", text[-200:])
    elif rest := text[position + 1 :].strip(_PADDING):
        yield unread(uri, "something follows the array", rest)


def converted(
    items: Iterable[Row | Unread], convert: Callable[[Row], Trajectory | Unread]
) -> Iterator[Trajectory | Unread]:
    """Each row as what `convert` makes of it; a row that it cannot handle is an `Unread` and ends nothing."""
    for item in items:
        if isinstance(item, Unread):
            yield item
            continue
        try:
            yield convert(item)
        except (ValueError, RecursionError) as error:
            yield unread(item.where, _why(error), item.where)


def unread(where: str, reason: str, content: Any, trace_id: str = "") -> Unread:
    """An `Unread` that stands for a run; without an id of its own it gets one from its content."""
    return Unread(where=where, reason=reason, trace_id=trace_id or f"unread-{content_hash(content)[:12]}")


def _records(text: str, where: str) -> Iterator[Row | Unread]:
    position = 0
    while position < len(text):
        try:
            value, position = _scan(text, position)
        except (ValueError, RecursionError) as error:
            yield unread(where, f"not a whole JSON record: {_why(error)}", text[position:])
            return
        yield _row(value, where)
        position = _skip(text, position)


def _row(value: Any, where: str) -> Row | Unread:
    if isinstance(value, dict):
        return Row(where, value)
    return unread(where, f"a JSON {type(value).__name__}, not an object", value)


def _scan(text: str, start: int) -> tuple[Any, int]:
    value, end = _DECODER.raw_decode(text, start)
    if _ESCAPED_SURROGATE.search(text, start, end):
        value = json.loads(whole(json.dumps(value, ensure_ascii=False)))
    return value, end


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _PADDING + ",":
        position += 1
    return position


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)
