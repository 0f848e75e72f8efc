"""Options that several commands share, and the request that they make."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from combee_core.config import SIMULATED, ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import UsageError
from combee_core.types import ShuffleMode

STORE = "file://./combee-store"


def add_store(parser: argparse.ArgumentParser) -> None:
    """`--store` and `--json`."""
    parser.add_argument("--store", default=STORE, metavar="URI", help="file://…, s3://bucket/prefix (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model answers, and how it is asked."""
    parser.add_argument("--model", metavar="NAME", help=f"any litellm model string; {SIMULATED} without one")
    parser.add_argument("--api-base", metavar="URL", help="base address of the model's server")
    parser.add_argument("--temperature", type=float, metavar="T", help=_help(ModelSettings, "temperature"))
    parser.add_argument("--max-output-tokens", type=int, metavar="N", help=_help(ModelSettings, "max_output_tokens"))
    parser.add_argument("--context-tokens", type=int, metavar="N", help=_help(ModelSettings, "context_tokens"))
    parser.add_argument("--timeout", type=float, metavar="S", help=_help(ModelSettings, "timeout"))
    parser.add_argument("--concurrency", type=int, metavar="N", help=_help(ModelSettings, "concurrency"))
    parser.add_argument("--retries", type=int, metavar="N", help=_help(ModelSettings, "retries"))
    parser.add_argument("--retry-delay", type=float, metavar="S", help=_help(ModelSettings, "retry_delay"))
    parser.add_argument("--use-reasoning", action="store_true", help=_help(ModelSettings, "use_reasoning"))


def add_run(parser: argparse.ArgumentParser) -> None:
    """How a run learns."""
    add_store(parser)
    parser.add_argument("--playbook", default="playbook", metavar="NAME", help="which playbook learns (%(default)s)")
    add_model(parser)
    parser.add_argument("--batch-size", type=int, metavar="N", help=_help(RunSettings, "batch_size"))
    parser.add_argument("--copies", type=int, metavar="P", help=_help(RunSettings, "copies"))
    parser.add_argument("--shuffle", choices=get_args(ShuffleMode), help=_help(RunSettings, "shuffle"))
    parser.add_argument("--seed", type=int, metavar="N", help=_help(RunSettings, "seed"))
    parser.add_argument("--prompts", metavar="DIR", help=_help(RunSettings, "prompts"))
    parser.add_argument("--limit", type=int, metavar="N", help=_help(Source, "limit"))
    parser.add_argument("--fields", metavar="FILE", help="JSON map from our field names to those of plain JSON lines")
    parser.add_argument("--no-ground-truth", action="store_true", help="withhold expected answers from the reflector")
    parser.add_argument("--again", action="store_true", help=_help(RunRequest, "again"))


def _help(settings: type[BaseModel], name: str) -> str:
    field = settings.model_fields[name]
    text = (field.description or name).replace("%", "%%")
    default = "" if field.default is None or field.default is False else f" ({field.default})"
    return f"{text[:1].lower()}{text[1:]}{default}"


def request_of(args: argparse.Namespace, **source: Any) -> RunRequest:
    """The request of a command. Raises `UsageError` for a value that is out of range."""
    with _said_plainly():
        return RunRequest(
            playbook=args.playbook,
            store=args.store,
            again=args.again,
            source=Source(
                limit=args.limit, ground_truth=not args.no_ground_truth, fields=_fields(args.fields), **source
            ),
            settings=RunSettings(**_given(args, RunSettings), model=model_of(args)),
        )


def model_of(args: argparse.Namespace) -> ModelSettings:
    """The model's settings. Raises `UsageError` for a value that is out of range."""
    with _said_plainly():
        return ModelSettings(**_given(args, ModelSettings))


def _given(args: argparse.Namespace, settings: type[BaseModel]) -> dict[str, Any]:
    """What the command line says about these settings; what it does not say keeps its default."""
    options = {name: getattr(args, name, None) for name in settings.model_fields}
    if settings is RunSettings:
        del options["model"]
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _said_plainly() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        option = f"--{str(first['loc'][-1]).replace('_', '-')}"
        name_rule = "use letters, digits, dots, dashes and underscores"
        rule = name_rule if first["type"] == "string_pattern_mismatch" else first["msg"].lower()
        raise UsageError(f"{option} {first['input']!r}: {rule}") from error


def _fields(path: str | None) -> dict[str, str] | None:
    if path is None:
        return None
    from combee_core.traces.plain import read_fields

    try:
        return read_fields(Path(path).read_bytes(), f"--fields {path}")
    except OSError as error:
        raise UsageError(f"--fields {path}: {error.strerror}") from error


def day_of(text: str) -> date:
    """An ISO date, for argparse."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2026-11-30") from error
