"""`combee simulate`: the offline stand-in over HTTP, and days of traces to try things out on."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from combee_core.cli.options import day_of
from combee_core.simulation.server import add_arguments, serve_arguments


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("simulate", help="the simulated model over HTTP, and traces")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    serve: argparse.ArgumentParser = actions.add_parser("serve", help="serve the model until stopped")
    add_arguments(serve)
    serve.set_defaults(command=run)
    traces: argparse.ArgumentParser = actions.add_parser("traces", help="write days of the simulated desk's traces")
    traces.add_argument("folder", type=Path, metavar="FOLDER", help="where DAY.jsonl files go")
    traces.add_argument("--first", type=day_of, metavar="D", help="2026-11-28; without it, so that yesterday is last")
    traces.add_argument("--days", type=int, default=1, metavar="N", help="how many days in a row (%(default)s)")
    traces.add_argument("--per-day", type=int, default=30, metavar="N", help="traces a day (%(default)s)")
    traces.add_argument("--seed", type=int, default=0, metavar="N", help="of the world's rules (%(default)s)")
    traces.set_defaults(command=write)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    serve_arguments(args)
    return 0


def write(args: argparse.Namespace) -> int:
    """Write one file a day; a file that is there is written anew with the same content."""
    from combee_core.simulation.day import day_jsonl
    from combee_core.simulation.world import World

    first = args.first or datetime.now(UTC).date() - timedelta(days=args.days)
    args.folder.mkdir(parents=True, exist_ok=True)
    world = World(args.seed)
    for day in (first + timedelta(days=n) for n in range(args.days)):
        file = args.folder / f"{day}.jsonl"
        file.write_bytes(day_jsonl(world, args.per_day, day.toordinal(), day))
        print(f"{file}: {args.per_day} traces")
    return 0
