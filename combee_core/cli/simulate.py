"""`combee simulate serve`: the offline stand-in over HTTP, in the OpenAI shape."""

from __future__ import annotations

import argparse
from typing import Any

from combee_core.simulation.server import add_arguments, serve_arguments


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("simulate", help="serve the simulated model over HTTP")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    serve: argparse.ArgumentParser = actions.add_parser("serve", help="serve until stopped")
    add_arguments(serve)
    serve.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    serve_arguments(args)
    return 0
