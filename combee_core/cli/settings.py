"""What a command's options say, over what its configuration file says, as a request and its settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from combee_core.cli import budgets
from combee_core.cli.options import BARS
from combee_core.cli.run_files import run_file
from combee_core.config import (
    AlarmBars,
    DateRange,
    ModelSettings,
    Nights,
    RunRequest,
    RunSettings,
    SizeSettings,
    Source,
)
from combee_core.errors import UsageError

if TYPE_CHECKING:
    from combee_core.run_file import Schedule


def request_of(args: argparse.Namespace, **source: Any) -> RunRequest:
    """The request of a command: its options, then its configuration file, then the defaults.

    `source` is what the command itself says about the source, None where it says nothing.
    Raises `UsageError` for a value that is out of range.
    """
    base = run_file(getattr(args, "config", None)).request
    truth = False if args.no_ground_truth else None
    told = {**source, "limit": args.limit, "ground_truth": truth, "fields": _fields(args.fields)}
    with _said_plainly():
        return RunRequest(
            **_over(base, _given(args, RunRequest)),
            source=Source(**_over(base.source, {name: value for name, value in told.items() if value is not None})),
            settings=settings_of(args, base.settings),
        )


def nights_of(args: argparse.Namespace) -> Nights:
    """What a night looks at besides its own day. Raises `UsageError` where a day is named, which is learned alone."""
    given = _given(args, Nights)
    if getattr(args, "day", None) and given:
        raise UsageError(f"--{min(given)} is for nights without --day: a named day is learned alone")
    with _said_plainly():
        return Nights(**{**run_file(getattr(args, "config", None)).nights.model_dump(), **given})


def range_of(text: str) -> DateRange:
    """`2026-11-01..2026-11-30`, or one day alone. Raises `UsageError` for anything else."""
    first, dots, last = text.partition("..")
    try:
        ends = date.fromisoformat(first), date.fromisoformat(last if dots else first)
    except ValueError as error:
        raise UsageError(f"{text!r} is no range of days such as 2026-11-01..2026-11-30 ({error})") from error
    with _said_plainly():
        return DateRange(first=ends[0], last=ends[1])


def learning_of(args: argparse.Namespace) -> RunRequest:
    """A request without a source: which playbook learns, and how. Raises `UsageError` as `request_of` does."""
    with _said_plainly():
        return RunRequest(**_given(args, RunRequest), settings=settings_of(args))


def settings_of(args: argparse.Namespace, base: RunSettings | None = None) -> RunSettings:
    """How a run learns, where nothing is said as in `base`. Raises `UsageError` for a value that is out of range."""
    base = base or RunSettings()
    tables = {
        "sizes": sizes_of(args, base.sizes),
        "alarms": alarms_of(args, base.alarms),
        "model": model_of(args, base.model),
        **budgets.of(args, base),
    }
    with _said_plainly():
        return RunSettings(**_over(base, _given(args, RunSettings)), **tables)


def _over(base: BaseModel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The plain settings of `base` under those that were given; its tables are made apart."""
    return {**base.model_dump(exclude=_TABLES), **given}


_OWN_TABLES = ("model", "sizes", "alarms")
_TABLES = {"source", "settings", *_OWN_TABLES, *budgets.SETTINGS}


def model_of(args: argparse.Namespace, base: ModelSettings | None = None) -> ModelSettings:
    """The model's settings, where nothing is said as in `base`. Raises `UsageError` as `request_of` does."""
    with _said_plainly():
        return ModelSettings(**{**(base.model_dump() if base else {}), **_given(args, ModelSettings)})


def sizes_of(args: argparse.Namespace, base: SizeSettings | None = None) -> SizeSettings:
    """How the batch size is chosen, where nothing is said as in `base`. Raises `UsageError` as `request_of` does."""
    with _said_plainly():
        return SizeSettings(**{**(base.model_dump() if base else {}), **_given(args, SizeSettings)})


def alarms_of(args: argparse.Namespace, base: AlarmBars) -> AlarmBars:
    """The bars of alarms, where nothing is said as in `base`. Raises `UsageError` for a value that is out of range."""
    given = {name: getattr(args, f"alarm_{name}", None) for name in BARS}
    with _said_plainly("alarm-"):
        return AlarmBars(**{**base.model_dump(), **{name: value for name, value in given.items() if value is not None}})


def schedule_of(args: argparse.Namespace, base: Schedule) -> Schedule:
    """When nights start. Raises `UsageError` for a schedule that is none."""
    with _said_plainly():
        return type(base)(**{**base.model_dump(), **_given(args, type(base))})


def _given(args: argparse.Namespace, settings: type[BaseModel]) -> dict[str, Any]:
    """What the command line says about these settings; what it does not say keeps its default."""
    options = {name: getattr(args, name, None) for name in settings.model_fields}
    if settings is RunSettings:
        for table in (*_OWN_TABLES, *budgets.SETTINGS):
            del options[table]
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _said_plainly(prefix: str = "") -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise UsageError(first["msg"].removeprefix("Value error, ")) from error
        option = f"--{prefix}{str(first['loc'][0]).replace('_', '-')}"
        name_rule = "use letters, digits, dots, dashes and underscores"
        said = first["msg"].removeprefix("Value error, ").lower()
        rule = name_rule if first["type"] == "string_pattern_mismatch" else said
        raise UsageError(f"{option} {first['input']!r}: {rule}") from error


def _fields(path: str | None) -> dict[str, str] | None:
    if path is None:
        return None
    from combee_core.traces.plain import read_fields

    try:
        return read_fields(Path(path).read_bytes(), f"--fields {path}")
    except OSError as error:
        raise UsageError(f"--fields {path}: {error.strerror}") from error
