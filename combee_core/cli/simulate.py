"""`combee simulate serve`: the offline stand-in over HTTP, in the OpenAI shape."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("simulate", help="serve the simulated model over HTTP")
    parser.add_argument("action", choices=("serve",))
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    return 0
