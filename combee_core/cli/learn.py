"""`combee learn`: learn from traces or samples, now."""

from __future__ import annotations

import argparse
from typing import Any

from combee_core.cli import options
from combee_core.errors import UsageError


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("learn", help="learn from traces or samples, now")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="trace files, folders or s3:// prefixes")
    parser.add_argument("--samples", metavar="FILE", help="JSON lines of {context, target}, or world:N (simulated)")
    parser.add_argument("--scorer", choices=("exact", "number", "formula"), default="exact", help="(%(default)s)")
    options.add_run(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Run the epoch flow."""
    from combee_core.cli import launch

    if bool(args.paths) == bool(args.samples):
        raise UsageError("name either trace PATHs or --samples FILE")
    if args.samples:
        request = options.request_of(args, kind="samples", uris=(args.samples,), scorer=args.scorer)
    else:
        request = options.request_of(args, uris=tuple(args.paths))
    launch.warn_if_simulated(request, args.model)
    result, error = launch.terminal().start("epoch", launch.absolute(request))
    return launch.report(result, error, as_json=args.json)
