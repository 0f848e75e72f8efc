"""Reads a model's raw answer: a `Completion` becomes the JSON that was asked for, or an error says why not.

    finish reason ─▶ refusal ─▶ reasoning blocks ─▶ strict JSON ─▶ mended JSON, only if no word of it changes

A cut answer is never mended, and one of several answers is never picked: both would lose text in silence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from combee_core.base import whole
from combee_core.calls import Completion
from combee_core.errors import AnswerEmpty, AnswerMalformed, AnswerTruncated, ModelRefused

MAX_DEPTH = 64
"""Levels of nesting; an answer of ours has four."""

_CUT = {"length", "max_tokens"}
_FILTERED = {"content_filter", "refusal", "safety"}

_PLACE = re.compile(
    r"<(?P<close>/?)(?P<tag>think|thinking|reasoning)\s*>"
    r"""|(?P<json>\{\s*(?:["'“”„}]|\w+\s*:)|(?<!\w)\[\s*[\[{"'“”„\]\d-])""",
    re.IGNORECASE,
)
_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_CURLY = str.maketrans("“”„‟", '""""')
_CURLY_AS_STRUCTURE = re.compile(r"[{,:\[]\s*[“”„‟]")


def read_answer(completion: Completion, *, use_reasoning: bool = False) -> Any:
    """The JSON object or array in an answer.

    `use_reasoning` takes the answer from the reasoning field where the content is empty. Raises
    `AnswerTruncated` before anything is parsed, `ModelRefused`, `AnswerEmpty` or `AnswerMalformed`.
    """
    _check_finish(completion)
    text = _content(completion, use_reasoning)
    try:
        return _sound(_one_of(_values(text), text))
    except RecursionError:
        raise _malformed("the answer is nested too deep to be read", text) from None


def _check_finish(completion: Completion) -> None:
    if completion.finish in _CUT:
        raise AnswerTruncated(_how_it_was_cut(completion))
    if completion.refusal:
        raise ModelRefused("the model refused").about(completion.refusal)
    if completion.finish in _FILTERED:
        raise ModelRefused(f"the provider filtered the answer (finish reason {completion.finish!r})")


def _how_it_was_cut(completion: Completion) -> str:
    tokens = completion.usage.output_tokens
    spent = f" of {tokens} output tokens" if tokens is not None else ""
    if (completion.text or "").strip():
        return f"the answer was cut at the token limit{spent}: allow more output tokens or ask for less"
    return f"the token limit{spent} was spent on reasoning before an answer began: allow more output tokens"


def _content(completion: Completion, use_reasoning: bool) -> str:
    if (completion.text or "").strip():
        return completion.text or ""
    if not (completion.reasoning or "").strip():
        raise AnswerEmpty(f"the answer is empty (finish reason {completion.finish!r})")
    if not use_reasoning:
        raise AnswerEmpty("the answer is empty: the model wrote into its reasoning field alone")
    return completion.reasoning or ""


def _values(text: str) -> list[Any]:
    """Every JSON value that stands outside reasoning. A draft inside a reasoning block is not an answer."""
    values: list[Any] = []
    at = 0
    while place := _PLACE.search(text, at):
        if place["json"]:
            value, at = _value_at(text, place.start())
            values.append(value)
        elif place["close"]:
            values, at = [], place.end()
        else:
            at = _end_of_reasoning(text, place, values)
    return values


def _end_of_reasoning(text: str, opening: re.Match[str], values: list[Any]) -> int:
    closing = re.compile(rf"</{opening['tag']}\s*>", re.IGNORECASE).search(text, opening.end())
    if closing:
        return closing.end()
    if values:
        return len(text)
    raise _malformed("the reasoning block never closed: what is in it may be a draft", text)


def _value_at(text: str, start: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except ValueError:
        end = _end_of_brackets(text, start)
        value = _mended(text[start:end])
    return value, end


def _end_of_brackets(text: str, start: int) -> int:
    depth, quoted = 0, False
    for mark in _MARK.finditer(text, start):
        if mark[0] == '"':
            quoted = not quoted
        elif not quoted and len(mark[0]) == 1:
            depth += 1 if mark[0] in "{[" else -1
            if depth == 0:
                return mark.end()
    raise _malformed("the JSON ends in the middle and is not mended", text)


def _mended(raw: str) -> Any:
    """The value of a broken but complete JSON text, if mending it changes no word."""
    if _CURLY_AS_STRUCTURE.search(raw):
        with suppress(ValueError):
            return _DECODER.decode(raw.translate(_CURLY))
    try:
        # Part of the `llm` extra; without it a broken answer is simply asked for again.
        from json_repair import repair_json
    except ImportError:
        raise _malformed("not valid JSON", raw) from None
    value = repair_json(raw, return_objects=True)
    if not isinstance(value, dict | list) or not _is_spelt_by(value, raw):
        raise _malformed("not valid JSON, and mending it would change its words", raw)
    return value


def _is_spelt_by(value: Any, raw: str) -> bool:
    """True if `raw` spells exactly `value`, if sloppily: each key and text whole, in order, and nothing else.

    Sloppy are single quotes, bare keys, missing or trailing commas, Python's literals, inner quotes. A repair
    that ends a text at an inner quote, or makes a key of its second half, does not pass.
    """
    at = 0
    for pattern in _spelling(value):
        found = re.compile(r"\s*" + pattern).match(raw, at)
        if not found:
            return False
        at = found.end()
    return not raw[at:].strip()


def _spelling(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield r"\{"
        for key, item in value.items():
            yield _quoted(key) if not key.isidentifier() else f"(?:{_quoted(key)}|{key})"
            yield ":"
            yield from _spelling(item)
            yield ",?"
        yield r"\}"
    elif isinstance(value, list):
        yield r"\["
        for item in value:
            yield from _spelling(item)
            yield ",?"
        yield r"\]"
    else:
        yield _quoted(value) if isinstance(value, str) else r"[-+.\w]+"


def _quoted(text: str) -> str:
    return r"""(?P<quote>["'])\s*""" + "".join(map(_character, text.strip())) + r"\s*(?P=quote)"


def _character(sign: str) -> str:
    escaped = json.dumps(sign)[1:-1]
    return re.escape(sign) if escaped == sign else f"(?:{re.escape(escaped)}|\\\\?{re.escape(sign)})"


def _one_of(values: list[Any], text: str) -> Any:
    """The one answer among the values found; answers that all hold operations are joined."""
    found = [v for v in values if _could_answer(v)] or [v for v in values if v in ({}, [])]
    answers = [value for number, value in enumerate(found) if value not in found[:number]]
    if not answers:
        raise _malformed("the answer holds no JSON object", text)
    if len(answers) == 1:
        return answers[0]
    if all(isinstance(answer, dict) and isinstance(answer.get("operations"), list) for answer in answers):
        joined = {key: item for answer in answers for key, item in answer.items()}
        return joined | {"operations": [one for answer in answers for one in answer["operations"]]}
    raise _malformed(f"the answer holds {len(answers)} different JSON values and none is picked", text)


def _could_answer(value: Any) -> bool:
    """True for objects with content and lists of objects; `[1]` in a sentence is a footnote."""
    return bool(value) and (isinstance(value, dict) or any(isinstance(item, dict) for item in value))


def _sound(value: Any, depth: int = 0) -> Any:
    """The value with lone surrogates replaced, so that it can be hashed, stored and sent."""
    if depth > MAX_DEPTH:
        raise AnswerMalformed(f"the answer is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {_sound(key): _sound(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_sound(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise AnswerMalformed("the answer holds a number that is none (NaN or infinite)")
    if isinstance(value, str):
        return whole(value)
    return value


def _malformed(why: str, text: str) -> AnswerMalformed:
    return AnswerMalformed(f"{why} ({len(text):,} characters)").about(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key is given twice")
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Not strict: a raw line break inside a text is a slip that changes no word.
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_no_constant)
