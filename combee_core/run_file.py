"""A run configuration: one TOML file that says everything about a playbook's runs, secrets apart."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from combee_core.base import Noun
from combee_core.config import Nights, RunRequest
from combee_core.days import zone
from combee_core.errors import UsageError
from combee_core.leaks import Leak, leaks, looks_secret

CRON = "30 3 * * *"
Path = tuple[str, ...]
Problems = dict[Path, list[str]]
"""What is wrong, by the path of the key: each entry is a whole sentence about it."""


_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def _cron(text: str) -> str:
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise ValueError(f"a cron schedule has five fields, such as {CRON}")
    for field, (low, high) in zip(fields, _BOUNDS, strict=True):
        numbers = [int(number) for number in re.findall(r"(?<![/\d])\d+", field)]
        if not re.fullmatch(r"[\w*/,#-]+", field) or not all(low <= number <= high for number in numbers):
            raise ValueError(f"{field} in a cron schedule: numbers from {low} to {high}, or *, lists, ranges, steps")
    return text


class Schedule(Noun):
    """When the served night starts."""

    cron: Annotated[str, AfterValidator(_cron)] = Field(
        CRON,
        description="When the night starts, in the source's time zone: minute, hour, day of month, month, weekday",
    )


class RunFile(RunRequest):
    """All of a file: a run's request, what a night looks at besides, and when a served one starts."""

    nights: Nights = Field(Nights(), description="What a night looks at besides its own day")
    schedule: Schedule = Field(Schedule(), description="When a served night starts")

    @property
    def request(self) -> RunRequest:
        """What a flow is given."""
        return RunRequest(**{name: getattr(self, name) for name in RunRequest.model_fields})


def read_run_file(text: str, where: str) -> RunFile:
    """The configuration in `text`. Raises `UsageError` naming the file, every bad key and the way out, a line each."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not valid TOML: {error}") from error
    file, found = _read(data)
    # A key that holds a secret is unknown as well; saying so would hide what matters.
    found |= {leak.path: [_advice(leak)] for leak in leaks(data, _at(data, "settings", "model", "model"))}
    if found or file is None:
        raise UsageError("\n".join(f"{where}: {shown(path)}: {'; or '.join(said)}" for path, said in found.items()))
    return file


def _read(data: Mapping[str, Any]) -> tuple[RunFile | None, Problems]:
    found: Problems = {}
    try:
        zone(_at(data, "source", "timezone") or "UTC")
    except UsageError as error:
        found["source", "timezone"] = [str(error)]
    try:
        return RunFile.model_validate(data), found
    except ValidationError as error:
        return None, _problems(error) | found


def shown(path: Sequence[str]) -> str:
    """`[settings.model] timeout`, as it is found in the file."""
    table = f"[{'.'.join(path[:-1])}] " if len(path) > 1 else ""
    return f"{table}{path[-1] if path else 'the file'}"


def keys(model: type[Noun] = RunFile, path: Path = ()) -> Iterator[Path]:
    """The path of every setting, tables before what they hold."""
    for name, field in model.model_fields.items():
        yield (*path, name)
        inner = table_of(field.annotation)
        if inner:
            yield from keys(inner, (*path, name))


def table_of(annotation: object) -> type[Noun] | None:
    """The noun that a table of the file is read as; None where the setting is a plain value."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, Noun) else None


def _at(data: Mapping[str, Any], *path: str) -> str:
    """The text at a place in a file that need not be well formed; empty where there is none."""
    value: Any = data
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _advice(leak: Leak) -> str:
    return f"looks like a secret, and a configuration is no place for one; take it out and set {leak.variable}"


def _problems(error: ValidationError) -> Problems:
    found: Problems = {}
    known = set(keys())
    for one in error.errors():
        path = tuple(str(part) for part in one["loc"])
        if one["type"] == "extra_forbidden":
            found[path] = [_unknown(path, known)]
            continue
        while path and path not in known:
            path = path[:-1]
        said = found.setdefault(path, [])
        said.append(_wrong(path, one) if not said else _said(one))
    return found


def _unknown(path: Path, known: set[Path]) -> str:
    *table, name = path
    beside = [other[-1] for other in known if list(other[:-1]) == table]
    elsewhere = sorted(other for other in known if other[-1] == name)
    if elsewhere:
        return f"is not a key here; it belongs in {shown(elsewhere[0])}"
    near = get_close_matches(name, beside, 1) or get_close_matches(name, [other[-1] for other in known], 1)
    if near:
        return f"there is no such key; did you mean {near[0]}?"
    return f"there is no such key; the keys here are {', '.join(sorted(beside))}"


def _wrong(path: Path, one: Any) -> str:
    value = one["input"]
    hidden = isinstance(value, Mapping) or not path or looks_secret(path[-1], value)
    return _said(one) if hidden else f"{json.dumps(value, default=str, ensure_ascii=False)} does not fit: {_said(one)}"


_PLAINLY = {
    "model_type": "it is a table: write its keys below its name in brackets",
    "tuple_type": 'write a list, such as ["a", "b"]',
    "string_pattern_mismatch": "use letters, digits, dots, dashes and underscores",
}


def _said(one: Any) -> str:
    if one["type"].startswith("date"):
        return "write a day as 2026-11-30"
    plainly: str | None = _PLAINLY.get(one["type"])
    message = str(one["msg"]).removeprefix("Value error, ")
    return plainly or f"{message[:1].lower()}{message[1:]}"
