"""`combee rerun`: go on with a failed or dead run; only what is missing is asked for."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("rerun", help="go on with a failed or dead run")
    parser.add_argument(
        "run_id", metavar="RUN_ID", help="id of the flow run, as its page and the failed command show it"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Run the flow run again under its own id."""
    from combee_core.cli import launch

    result, error = launch.terminal().restart(args.run_id)
    return launch.report(result, error, as_json=args.json)
