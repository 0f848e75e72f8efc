"""`combee runs`: the runs of a store, newest first, with what failed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from combee_core.cli import options

if TYPE_CHECKING:
    from combee_core.history import Seen

_COLUMNS = ("run", "state", "playbook", "input", "began (UTC)", "traces", "batches", "flow run")
"""The last ones are left out where a terminal is too narrow for them."""

_WIDEST = 1_000


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("runs", help="the runs of a store, and what failed")
    parser.add_argument("--playbook", metavar="NAME", help="of one playbook only")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="the newest N (%(default)s)")
    options.add_store(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """List them."""
    from combee_core.adapters.stores import open_store
    from combee_core.history import recent

    store = open_store(args.store)
    found = recent(store, args.playbook, args.limit)
    if args.json:
        print(json.dumps({"runs": [seen.model_dump(mode="json") for seen in found]}, ensure_ascii=False))
    elif found:
        print("\n".join(_lines(found)))
    else:
        print(f"no runs in {store.uri}")
    return 0


def _lines(found: Sequence[Seen]) -> Iterator[str]:
    rows = [_COLUMNS, *map(_row, found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    room = get_terminal_size((_WIDEST, 0)).columns
    fitting = [at for at in range(len(_COLUMNS)) if sum(widths[: at + 1]) + 2 * at <= room]
    for row, seen in zip(rows, (None, *found), strict=True):
        yield "  ".join(row[at].ljust(widths[at]) for at in fitting).rstrip()
        if seen and seen.failure:
            yield f"    {seen.failure.told}"
        if seen and seen.state == "budget" and seen.failure is None:
            yield "    what was complete at the cap is published; the rest, if any, is in the backlog"
        elif seen and seen.state not in ("done", "barren", "running"):
            how = ", with a higher cap" if seen.state == "budget" else ""
            yield f"    go on{how}: combee rerun {seen.flow_run_id or seen.run}"


def _row(seen: Seen) -> tuple[str, ...]:
    from combee_core.base import clip

    batches = f"{seen.batches_done} of {seen.batches_planned or '?'}"
    began = f"{seen.began:%Y-%m-%d %H:%M}" if seen.began else ""
    what = clip(seen.what, 40)
    return (seen.run, seen.state, seen.playbook, what, began, str(seen.traces), batches, seen.flow_run_id)
