"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from typing import Any, get_args

from pydantic import BaseModel

from combee_core.base import uncapped
from combee_core.cli import budgets
from combee_core.config import (
    AUTO,
    SIMULATED,
    AlarmBars,
    Grouping,
    MergeForm,
    Missed,
    ModelSettings,
    Nights,
    Peak,
    RunRequest,
    RunSettings,
    SizeSettings,
    Source,
)
from combee_core.types import ShuffleMode

STORE = "file://./combee-store"


def add_store(parser: argparse.ArgumentParser, default: str | None = STORE) -> None:
    """`--store` and `--json`."""
    parser.add_argument("--store", default=default, metavar="URI", help=f"file://…, s3://bucket/prefix ({STORE})")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model answers, and how it is asked."""
    parser.add_argument("--model", metavar="NAME", help=f"any litellm model string; {SIMULATED} without one")
    parser.add_argument("--api-base", metavar="URL", help="base address of the model's server")
    parser.add_argument(
        "--use-reasoning", action="store_true", default=None, help=_help(ModelSettings, "use_reasoning")
    )
    group = parser.add_argument_group("calls")
    for name in ("temperature", "timeout", "retry_delay", "hedge", "wait_budget"):
        _add(group, ModelSettings, name, float)
    for name in ("max_output_tokens", "context_tokens", "retries", "breaker", *_LIMITS):
        _add(group, ModelSettings, name, int)
    add_price(group)
    group.add_argument(
        "--fallback-model",
        dest="fallbacks",
        action="append",
        metavar="[STAGE=]NAME",
        help=f"{_help(ModelSettings, 'fallbacks')}; repeatable, asked in the order given",
    )


def add_price(group: argparse._ActionsContainer) -> None:
    """`--price`, which caps in money may need."""
    group.add_argument("--price", type=_price, metavar="IN,OUT", help=_help(ModelSettings, "price"))


_LIMITS = ("concurrency", "max_concurrency", "rpm", "tpm", "processes")


def add_run(parser: argparse.ArgumentParser) -> None:
    """How a run learns."""
    add_learning(parser)
    parser.add_argument("--limit", type=int, metavar="N", help=_help(Source, "limit"))
    parser.add_argument("--fields", metavar="FILE", help="JSON map from our field names to those of plain JSON lines")
    parser.add_argument("--no-ground-truth", action="store_true", help="withhold expected answers from the reflector")
    parser.add_argument("--again", action="store_true", default=None, help=_help(RunRequest, "again"))
    group = parser.add_argument_group("tasks")
    _add(group, RunSettings, "shard_size", number_or_auto)
    group.add_argument("--dask", metavar="ADDRESS", help=_help(RunSettings, "dask"))
    _add_alarms(parser.add_argument_group("alarms, where the end of a run is beyond these"))


def add_learning(parser: argparse.ArgumentParser) -> None:
    """Which playbook learns from which model, in what batches and how they are reduced."""
    add_store(parser, default=None)
    parser.add_argument("--playbook", metavar="NAME", help="which playbook learns (playbook)")
    add_model(parser)
    parser.add_argument("--seed", type=int, metavar="N", help=_help(RunSettings, "seed"))
    parser.add_argument("--prompts", metavar="DIR", help=_help(RunSettings, "prompts"))
    _add(parser, RunSettings, "batch_size", number_or_auto)
    budgets.add(parser)
    add_sizes(parser)
    _add_reduce(parser.add_argument_group("reduce"))


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """`--dry-run`."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print traces, calls, tokens, cost and time to expect, and do nothing"
    )


def add_nights(parser: argparse.ArgumentParser) -> None:
    """What a night without a day of its own looks at besides."""
    group = parser.add_argument_group("missed days, where no --day is named")
    _add(group, Nights, "lookback", int)
    group.add_argument("--missed", choices=get_args(Missed), help=_help(Nights, "missed"))


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """How the batch size is chosen."""
    group = parser.add_argument_group("batch size, where it is auto")
    _add(group, SizeSettings, "candidates", _numbers)
    for name in ("tau", "drift"):
        _add(group, SizeSettings, name, float)
    for name in ("cap", "fallback"):
        _add(group, SizeSettings, name, int)
    group.add_argument("--peak", choices=get_args(Peak), help=_help(SizeSettings, "peak"))


def _add_alarms(group: argparse._ArgumentGroup) -> None:
    for name, kind in BARS.items():
        shown = "N" if kind is int else "X"
        group.add_argument(f"--alarm-{name}", type=kind, metavar=shown, help=_help(AlarmBars, name))


BARS: dict[str, Callable[[str], Any]] = {"learned": float, "survival": float, "silent": int, "cost": float}


def _add_reduce(group: argparse._ArgumentGroup) -> None:
    _add(group, RunSettings, "copies", number_or_auto)
    for name in ("max_group", "levels"):
        _add(group, RunSettings, name, int)
    _add(group, RunSettings, "alike", float)
    group.add_argument("--embedding", metavar="NAME", help=_help(RunSettings, "embedding"))
    for name, values in (("shuffle", ShuffleMode), ("grouping", Grouping), ("merge", MergeForm)):
        group.add_argument(f"--{name}", choices=get_args(values), help=_help(RunSettings, name))


def _add(group: argparse._ActionsContainer, settings: type[BaseModel], name: str, kind: Callable[[str], Any]) -> None:
    """The option of a setting."""
    shown = "X" if kind is float else "N,N" if kind is _numbers else "N"
    group.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=shown, help=_help(settings, name))


def number_or_auto(text: str) -> int | str:
    """A number or `auto`, for argparse."""
    try:
        return AUTO if text == AUTO else int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {AUTO}") from error


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 5,10,20") from error


def _price(text: str) -> tuple[float, ...]:
    try:
        given, made = map(float, text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no pair of prices such as 2.50,10") from error
    return given, made


def _help(settings: type[BaseModel], name: str) -> str:
    field = settings.model_fields[name]
    text = (field.description or name).replace("%", "%%")
    default = (
        "" if field.default is None or field.default is False or field.default == () else f" ({_shown(field.default)})"
    )
    return f"{uncapped(text)}{default}"


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def day_of(text: str) -> date:
    """An ISO date, for argparse."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2026-11-30") from error
