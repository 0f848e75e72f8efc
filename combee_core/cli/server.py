"""`combee server`: the user's own Prefect server."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from combee_core.adapters import prefect_server
from combee_core.adapters.prefect_server import ServerFile


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("server", help="start, stop or find the Prefect server")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start it, if it does not run")
    up.add_argument("--database", metavar="URL", help=f"{_DATABASES} (default: $COMBEE_DATABASE_URL, else sqlite)")
    up.add_argument("--port", type=int, default=0, help="on 127.0.0.1 (default: the last one, else a free one)")
    up.set_defaults(command=run, act=_up)
    actions.add_parser("down", help="stop it").set_defaults(command=run, act=_down)
    actions.add_parser("status", help="say where it is and on what database").set_defaults(command=run, act=_status)


_DATABASES = "postgresql+asyncpg://USER:PASSWORD@HOST/NAME, which `ps` shows while this command runs, or sqlite"


def run(args: argparse.Namespace) -> int:
    """Do it and say where the server is."""
    configured = prefect_server.configured_api()
    if configured:
        answers = prefect_server.healthy(configured)
        print(f"a server is configured: {configured} (PREFECT_API_URL or profile); this command leaves it alone")
        print("it answers" if answers else "it does not answer")
        return 0 if answers else 1
    act: Callable[[argparse.Namespace, Path], int] = args.act
    return act(args, prefect_server.home())


def _up(args: argparse.Namespace, folder: Path) -> int:
    return _shown(prefect_server.up(folder, args.database, args.port))


def _down(args: argparse.Namespace, folder: Path) -> int:
    stopped = prefect_server.down(folder)
    print(f"stopped {stopped.ui}" if stopped else "no server was running")
    return 0


def _status(args: argparse.Namespace, folder: Path) -> int:
    server = prefect_server.running(folder)
    if server is None:
        print("no server is running; start one with: combee server up")
        return 1
    return _shown(server)


def _shown(server: ServerFile) -> int:
    print(f"Prefect UI {server.ui}\nAPI        {server.api}\ndatabase   {server.database}")
    print("stop it    combee server down")
    return 0
