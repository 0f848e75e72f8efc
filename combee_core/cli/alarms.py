"""`combee alarms setup`: automations on the Prefect server for runs that fail, fall silent or raise an alarm."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from combee_core.errors import UsageError

_BEAT = 180
"""Seconds between two heartbeats of a flow run, unless PREFECT_FLOWS_HEARTBEAT_FREQUENCY says otherwise."""

_BEATS = 3


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("alarms", help="be told of runs that fail or fall silent")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    setup: argparse.ArgumentParser = actions.add_parser("setup", help="make or mend the server's automations")
    setup.add_argument("--url", metavar="URL", help="called by the server with a JSON body")
    silence = "seconds without a heartbeat after which a run is marked Crashed (%(default)s)"
    setup.add_argument("--silence", type=int, default=600, metavar="N", help=silence)
    setup.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")
    setup.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Set them up and say what was done. Raises `UsageError` for a silence that a living run would keep."""
    from combee_core.adapters.prefect_alarms import set_up
    from combee_core.adapters.prefect_api import PrefectApi
    from combee_core.cli.launch import ensure_server

    least = _BEATS * int(os.environ.get("PREFECT_FLOWS_HEARTBEAT_FREQUENCY") or _BEAT)
    if args.silence < least:
        raise UsageError(f"--silence {args.silence}: at least {least} s, {_BEATS} heartbeats, or live runs would crash")
    done = set_up(PrefectApi(ensure_server()), args.url, args.silence)
    if args.json:
        print(json.dumps({"automations": done, "webhook": bool(args.url)}))
        return 0
    for name, what in done.items():
        print(f"{what:<9}  {name}")
    print("they call your URL" if args.url else "they show in the event feed; to be called, name a --url")
    return 0
