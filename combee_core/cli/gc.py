"""`combee gc`: forget what nobody can ask about any more."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from combee_core.cli import options
from combee_core.errors import CombeeError, UsageError


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "gc", help="delete old answers, task results, runs, orphan versions and Prefect history"
    )
    parser.add_argument("--keep-days", type=int, required=True, metavar="N", help="nothing younger goes; at least 1")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    options.add_store(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Sweep the store, then the server's history. Raises `UsageError` for less than a day."""
    from combee_core.adapters.stores import open_store
    from combee_core.pruning import Gc

    if args.keep_days < 1:
        raise UsageError(f"--keep-days {args.keep_days}: at least 1, or what a running night needs would go")
    store, before = open_store(args.store), datetime.now(UTC) - timedelta(days=args.keep_days)
    found = Gc(store, before, args.dry_run).sweep()
    history, note = None, ""
    try:
        history = _history(store.uri, before, args.dry_run)
    except CombeeError as error:
        note = f"Prefect's history stays: {error}"
    report = {
        "store": store.uri,
        "before": before.isoformat(timespec="seconds"),
        "dry_run": args.dry_run,
        **found.model_dump(mode="json"),
        "history": history,
        "note": note,
    }
    print(json.dumps(report, ensure_ascii=False) if args.json else "\n".join(_lines(report)))
    return 1 if note else 0


def _history(store: str, before: datetime, dry_run: bool) -> Mapping[str, int] | None:
    from combee_core.adapters import prefect_server
    from combee_core.adapters.prefect_api import PrefectApi
    from combee_core.adapters.prefect_history import prune_history

    address, _ = prefect_server.in_use()
    return prune_history(PrefectApi(address), store, before, dry_run=dry_run) if address else None


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{report['store']}: what was last written before {report['before']}"
    verb = "would be deleted" if report["dry_run"] else "deleted"
    for kind, count in report["objects"].items():
        yield f"  {kind}: {count:,} {verb}, {report['bytes'][kind]:,} bytes"
    for run in report["held"]:
        yield f"  run {run}: left alone, a live process works on it"
    for kind, count in (report["history"] or {}).items():
        yield f"  Prefect's {kind}: {count:,} {verb}"
    if report["history"] is None:
        yield f"  {report['note'] or 'no Prefect server is running: its history stays (combee server up, then again)'}"
    yield "kept: versions that `latest` leads back to, the runs that made them, days, backlog, measurements"
