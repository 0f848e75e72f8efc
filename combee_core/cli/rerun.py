"""`combee rerun`: say what is saved and what is left of a failed, stopped or dead run, then go on with it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from combee_core.cli import budgets, options, settings

if TYPE_CHECKING:
    from combee_core.runs import Run

_UNPLANNED = "it ended before it had a plan: it begins from the start"


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("rerun", help="go on with a failed, stopped or dead run")
    parser.add_argument("run_id", metavar="RUN_ID", help="id of a flow run, or of a run as `combee runs` shows it")
    parser.add_argument("--explain", "--dry-run", action="store_true", help="only say what would be done")
    options.add_store(parser)
    budgets.add(parser)
    options.add_price(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Explain, then run the flow run again under its own id."""
    from combee_core.adapters.standings import flow_run_of, standing_of, with_caps
    from combee_core.cli import launch
    from combee_core.resuming import explanation

    runs, capped = _found(args), partial(settings.settings_of, args)
    today = datetime.now(UTC).date()
    standings = [with_caps(standing_of(one), one, capped(one.settings()), today) for one in runs]
    lines = [line for standing in standings for line in explanation(standing)] or [_UNPLANNED]
    if args.explain:
        shown = {"runs": [standing.model_dump(mode="json") for standing in standings]}
        print(json.dumps(shown, ensure_ascii=False) if args.json else "\n".join(lines))
        return 0
    for line in lines:
        launch.note(line)
    by_key = len(runs) == 1 and runs[0].key == args.run_id
    finished = bool(standings) and all(standing.is_finished for standing in standings)
    # Of a flow run that learns several days, the later ones may not have begun.
    if finished and (by_key or launch.terminal().is_completed(args.run_id)):
        return _recorded(runs[-1], args)
    flow_run_id = flow_run_of(runs[0]) if by_key else args.run_id
    result, error = launch.terminal().restart(flow_run_id, capped, runs[0] if by_key else None)
    return launch.report(result, error, as_json=args.json)


def _found(args: argparse.Namespace) -> Sequence[Run]:
    """The runs that the id means, in the store that is named, else in the one that the flow run was started with."""
    from combee_core.adapters.standings import find_runs
    from combee_core.adapters.stores import open_store
    from combee_core.cli import launch

    found = find_runs(open_store(args.store), args.run_id)
    return found or launch.terminal().runs_of_flow_run(args.run_id)


def _recorded(run: Run, args: argparse.Namespace) -> int:
    from combee_core.cli import launch
    from combee_core.outcome import replayed

    result = run.result()
    return launch.report(replayed(result), None, as_json=args.json) if result else 1
