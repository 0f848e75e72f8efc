"""`combee backfill`: learn the days of a range in order, each on what those before it taught."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from combee_core.cli import options, run_files, settings
from combee_core.days import is_over


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("backfill", help="learn the days of a range, in order")
    parser.add_argument("days", metavar="DAYS", help="2026-11-01..2026-11-30, both included, or one day")
    parser.add_argument("--traces", metavar="URI", help="folder or s3:// prefix of the traces")
    parser.add_argument("--timezone", metavar="ZONE", help="whose midnight ends a day (UTC)")
    parser.add_argument("--force", action="store_true", help="learn the days anew, whether they were learned or not")
    parser.add_argument(
        "--independent",
        action="store_true",
        help="learn every day from the present version, none from another's lessons",
    )
    run_files.add_config(parser)
    options.add_run(parser)
    options.add_dry_run(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Run the backfill flow."""
    from combee_core.cli import dry_run, launch

    days = settings.range_of(args.days)
    request = settings.request_of(args, uris=(args.traces,) if args.traces else None, timezone=args.timezone)
    request = launch.check(request)
    is_over(days.last, request.source.timezone, datetime.now(UTC))
    launch.warn_if_simulated(request, args.model)
    flags = {"force": bool(args.force or args.again), "independent": args.independent}
    if args.dry_run:
        return dry_run.of_days(request, days, as_json=args.json, **flags)
    result, error = launch.terminal().start("backfill", request, days=days, **flags)
    return launch.report(result, error, as_json=args.json)
