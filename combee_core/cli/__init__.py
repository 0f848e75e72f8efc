"""The `combee` command. Parsers are built at once; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module

from combee_core.errors import CombeeError, UsageError

_STOPPED = "stopped; the same command goes on from what is saved"
_COMMANDS = (
    "demo",
    "learn",
    "nightly",
    "backfill",
    "rerun",
    "plan",
    "profile",
    "server",
    "playbook",
    "simulate",
    "doctor",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 when done, 1 when the run failed, 2 on wrong use."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        code: int = args.command(args)
        return code
    except CombeeError as error:
        return _failed(args, str(error), 2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        return _failed(args, _STOPPED, 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _failed(args: argparse.Namespace, message: str, code: int) -> int:
    print(f"combee: {message}", file=sys.stderr)
    if getattr(args, "json", False):
        print(json.dumps({"error": {"stage": "start", "item": "", "message": message}}, ensure_ascii=False))
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="combee", description="Agents' traces in, a better, versioned, explainable playbook out."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in _COMMANDS:
        import_module(f"combee_core.cli.{name}").add(commands)
    return parser
