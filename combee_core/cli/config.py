"""`combee config`: read a run configuration, say what every value is, or what is wrong."""

from __future__ import annotations

import argparse
import json
from shutil import get_terminal_size
from typing import Any

from combee_core.cli import run_files

_UNBOUNDED = 1_000
"""Columns where the output is no terminal: lines stay whole for other programs."""


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("config", help="check and explain a run configuration")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check: argparse.ArgumentParser = actions.add_parser("check", help="every setting, its value, where it comes from")
    check.add_argument("file", metavar="FILE", help="TOML, as in deployments/nightly.toml")
    check.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")
    check.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Explain the file. Raises `UsageError` naming every key that is wrong."""
    from combee_core.explained import explain, lines

    settings = explain(run_files.run_file(args.file))
    if args.json:
        shown = [{"name": one.name, **one.model_dump(mode="json", exclude={"path"})} for one in settings]
        print(json.dumps({"file": args.file, "settings": shown}, ensure_ascii=False))
    else:
        given = sum(one.given for one in settings)
        print(f"{args.file}: fine; {given} settings given, {len(settings) - given} by default\n")
        print("\n".join(lines(settings, get_terminal_size((_UNBOUNDED, 0)).columns)))
    return 0
