"""`combee server`: the user's own Prefect server."""

from __future__ import annotations

import argparse
from typing import Any

from combee_core.adapters import prefect_server


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("server", help="start, stop or find the Prefect server")
    parser.add_argument("action", choices=("up", "down", "status"))
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Do it and say where the server is."""
    folder = prefect_server.home()
    configured = prefect_server.configured_api()
    if configured:
        answers = prefect_server.healthy(configured)
        print(f"a server is configured: {configured} (PREFECT_API_URL or profile); this command leaves it alone")
        print("it answers" if answers else "it does not answer")
        return 0 if answers else 1
    if args.action == "down":
        stopped = prefect_server.down(folder)
        print(f"stopped {stopped.ui}" if stopped else "no server was running")
        return 0
    server = prefect_server.up(folder) if args.action == "up" else prefect_server.running(folder)
    if server is None:
        print("no server is running; start one with: combee server up")
        return 1
    print(f"Prefect UI {server.ui}\nAPI        {server.api}\nstop it    combee server down")
    return 0
