"""`combee doctor`: is everything there that a night needs?"""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor", help="check model, store, server and versions")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """One line a check."""
    return 0
