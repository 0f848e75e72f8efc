"""The `combee` command. Parsers are built at once; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from combee_core.cli import logs
from combee_core.errors import CombeeError, UsageError
from combee_core.events import event

_STOPPED = "stopped; the same command goes on from what is saved"
_LAST_WORDS = 30.0
"""Seconds that a command may take to end after its last output."""

_COMMANDS = (
    "demo",
    "learn",
    "nightly",
    "backfill",
    "runs",
    "rerun",
    "backlog",
    "plan",
    "profile",
    "serve",
    "config",
    "server",
    "playbook",
    "simulate",
    "doctor",
    "alarms",
    "gc",
)


def command() -> int:
    """`main`, as the last thing that a process does: it ends soon, whatever Prefect still has to tell its server."""
    code = main()
    if "prefect" in sys.modules:
        # Events and logs are sent one by one; to a server that is gone that takes seconds each, for thousands of them.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        end = threading.Timer(_LAST_WORDS, os._exit, (code,))
        end.daemon = True
        end.start()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 when done, 1 when the run failed, 2 on wrong use."""
    form, rest = logs.option().parse_known_args(argv)
    parser = _parser()
    args = parser.parse_args(rest)
    logs.set_up(form.log_format)
    try:
        code: int = args.command(args)
        return code
    except CombeeError as error:
        return _failed(args, str(error), 2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt as stopped:
        return _failed(args, str(stopped) or _STOPPED, getattr(stopped, "code", 130))
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _failed(args: argparse.Namespace, message: str, code: int) -> int:
    event(logs.LOG, logging.ERROR, "failed", message, code=code)
    if getattr(args, "json", False):
        print(json.dumps({"error": {"stage": "start", "item": "", "message": message}}, ensure_ascii=False))
    return code


class _Described:
    """Commands whose own help begins with what the list of commands says of them."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:
        """A parser for the command."""
        described = f"{help[:1].upper()}{help[1:]}."
        made: argparse.ArgumentParser = self._commands.add_parser(name, help=help, description=described)
        return made


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="combee",
        description="Agents' traces in, a better, versioned, explainable playbook out.",
        parents=[logs.option()],
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in _COMMANDS:
        import_module(f"combee_core.cli.{name}").add(_Described(commands))
    return parser
