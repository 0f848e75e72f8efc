"""Options that several commands share, and the request that they make."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from combee_core.config import SIMULATED, ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import UsageError

STORE = "file://./combee-store"


def add_store(parser: argparse.ArgumentParser) -> None:
    """`--store` and `--json`."""
    parser.add_argument("--store", default=STORE, metavar="URI", help="file://…, s3://bucket/prefix (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")


def add_run(parser: argparse.ArgumentParser) -> None:
    """How a run learns."""
    add_store(parser)
    parser.add_argument("--playbook", default="playbook", metavar="NAME", help="which playbook learns (%(default)s)")
    parser.add_argument("--model", metavar="NAME", help=f"any litellm model string; {SIMULATED} without one")
    parser.add_argument("--api-base", metavar="URL", help="base address of the model's server")
    parser.add_argument("--batch-size", type=int, default=40, metavar="N", help="traces to a batch (%(default)s)")
    parser.add_argument("--copies", type=int, default=2, metavar="P", help="copies of each reflection (%(default)s)")
    parser.add_argument("--shuffle", choices=("paper", "spread"), default="paper", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="(%(default)s)")
    parser.add_argument("--concurrency", type=int, default=32, metavar="N", help="calls in flight (%(default)s)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N traces or samples, by id")
    parser.add_argument("--again", action="store_true", help="start a new run although this one is finished")
    parser.add_argument("--no-ground-truth", action="store_true", help="withhold expected answers from the reflector")
    parser.add_argument("--fields", metavar="FILE", help="JSON map from our field names to those of plain JSON lines")
    parser.add_argument("--prompts", metavar="DIR", help="folder whose .md files replace the learner's prompts")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="(%(default)s)")
    parser.add_argument("--max-output-tokens", type=int, default=8192, metavar="N", help="(%(default)s)")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="seconds for a call (%(default)s)")
    parser.add_argument("--retries", type=int, default=2, metavar="N", help="retries of a failed call (%(default)s)")
    parser.add_argument("--retry-delay", type=float, default=1.0, metavar="S", help="before the first (%(default)s)")
    parser.add_argument("--use-reasoning", action="store_true", help="read the reasoning field if content is empty")


def request_of(args: argparse.Namespace, **source: Any) -> RunRequest:
    """The request of a command. Raises `UsageError` for a value that is out of range."""
    try:
        return RunRequest(
            playbook=args.playbook,
            store=args.store,
            again=args.again,
            source=Source(
                limit=args.limit, ground_truth=not args.no_ground_truth, fields=_fields(args.fields), **source
            ),
            settings=_settings(args),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{where}: {first['msg']} (got {first['input']!r})") from error


def _settings(args: argparse.Namespace) -> RunSettings:
    model = ModelSettings(
        model=args.model or SIMULATED,
        api_base=args.api_base,
        temperature=args.temperature,
        max_output_tokens=args.max_output_tokens,
        timeout=args.timeout,
        concurrency=args.concurrency,
        retries=args.retries,
        retry_delay=args.retry_delay,
        use_reasoning=args.use_reasoning,
    )
    return RunSettings(
        batch_size=args.batch_size,
        copies=args.copies,
        shuffle=args.shuffle,
        seed=args.seed,
        prompts=args.prompts,
        model=model,
    )


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
