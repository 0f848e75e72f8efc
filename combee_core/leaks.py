"""Secrets that were written where they do not belong: found by name and by form, never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_NAME = re.compile(r"(api|access|account|secret|private|auth|bearer)[_-]?(key|token)|(^|[_-])(secret|token|key)$", re.I)
_WORD = re.compile(r"passw(or)?d|secret|credential", re.I)
_VALUE = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{12,}|gsk_\w{12,}|hf_\w{12,}|AIza[\w-]{20,}|(AKIA|ASIA)[A-Z0-9]{12,}|xox\w-\S{10,}|gh[pousr]_\w{20,})"
)
_UNUSUAL = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}


class Leak(NamedTuple):
    """A secret at `path` and the environment variable that it belongs in."""

    path: tuple[str, ...]
    variable: str


def leaks(data: Mapping[str, Any], model: str = "") -> Iterator[Leak]:
    """Every secret in nested `data`; `model` tells whose key it is where its name does not."""
    for path, value in _leaves(data):
        if looks_secret(path[-1], value):
            yield Leak(path, variable(path[-1], value, model))


def looks_secret(name: str, value: object) -> bool:
    """Whether a setting looks like a key, token or password, by its name or by its value."""
    named = isinstance(value, str) and bool(_NAME.search(name) or _WORD.search(name))
    return named or (isinstance(value, str) and bool(_VALUE.search(value) or _has_password(value)))


def variable(name: str, value: object, model: str) -> str:
    """The environment variable that a secret of this name belongs in."""
    text = str(value)
    if text.startswith("s3://"):
        return _UNUSUAL["bedrock"]
    if re.search(r"\b(AKIA|ASIA)", text) or re.search("aws|^(access|secret)", name, re.I):
        return "AWS_SECRET_ACCESS_KEY" if re.search("secret", name, re.I) else "AWS_ACCESS_KEY_ID"
    if name.isupper():
        return name
    provider = model.split("/")[0] if "/" in model else "openai"
    return _UNUSUAL.get(provider, f"{re.sub(r'[^A-Za-z0-9]', '_', provider).upper()}_API_KEY")


def _has_password(text: str) -> bool:
    if "://" not in text:
        return False
    try:
        return urlsplit(text).password is not None
    except ValueError:
        return False


def _leaves(data: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _leaves(value, (*path, str(name)))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _leaves(value, path)
    else:
        yield path, data
