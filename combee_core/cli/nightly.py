"""`combee nightly`: learn from one day's traces."""

from __future__ import annotations

import argparse
from typing import Any

from combee_core.cli import options, run_files, settings


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("nightly", help="learn from one day's traces")
    parser.add_argument("--traces", metavar="URI", help="folder or s3:// prefix of the traces")
    parser.add_argument("--day", type=options.day_of, metavar="D", help="2026-11-30; yesterday without it")
    parser.add_argument("--timezone", metavar="ZONE", help="whose midnight ends a day (UTC)")
    run_files.add_config(parser)
    options.add_nights(parser)
    options.add_run(parser)
    options.add_dry_run(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Run the nightly flow."""
    from combee_core.cli import dry_run, launch

    nights = settings.nights_of(args)
    uris = (args.traces,) if args.traces else None
    request = settings.request_of(args, uris=uris, day=args.day, timezone=args.timezone)
    request = launch.check(request)
    launch.warn_if_simulated(request, args.model)
    if args.dry_run:
        return dry_run.of_night(request, nights, as_json=args.json)
    result, error = launch.terminal().start("nightly", request, nights=nights)
    return launch.report(result, error, as_json=args.json)
