"""`combee learn`: learn from traces or samples, now."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from combee_core.cli import options, run_files, settings
from combee_core.config import Scoring
from combee_core.errors import UsageError


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("learn", help="learn from traces or samples, now")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="trace files, folders or s3:// prefixes")
    parser.add_argument("--samples", metavar="FILE", help="JSON lines of {context, target}, or world:N (simulated)")
    parser.add_argument("--scorer", choices=get_args(Scoring), help="how samples are judged (exact)")
    run_files.add_config(parser)
    options.add_run(parser)
    options.add_dry_run(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Run the epoch flow."""
    from combee_core.cli import dry_run, launch

    if args.paths and args.samples:
        raise UsageError("name either trace PATHs or --samples FILE")
    if args.samples and args.fields:
        raise UsageError("--fields is for traces; samples are JSON lines of context and target")
    if args.paths and args.scorer:
        raise UsageError("--scorer is for --samples; traces have been scored where they were made")
    kind = "samples" if args.samples else "traces" if args.paths else None
    uris = (args.samples,) if args.samples else tuple(args.paths) or None
    request = settings.request_of(args, kind=kind, uris=uris, scorer=args.scorer)
    request = launch.check(request)
    launch.warn_if_simulated(request, args.model)
    if args.dry_run:
        return dry_run.of_input(request, as_json=args.json)
    result, error = launch.terminal().start("epoch", request)
    return launch.report(result, error, as_json=args.json)
