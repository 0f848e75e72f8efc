"""`combee serve`: the deployments without a work pool; this process waits and starts what is due."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from combee_core.cli import options, run_files, settings
from combee_core.errors import UsageError

if TYPE_CHECKING:
    from combee_core.run_file import RunFile


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("serve", help="nights by schedule, without a work pool")
    run_files.add_config(parser, nargs="+")
    parser.add_argument("--traces", metavar="URI", help="folder or s3:// prefix of the traces")
    parser.add_argument("--cron", metavar="CRON", help='when nights start ("30 3 * * *")')
    parser.add_argument("--timezone", metavar="ZONE", help="of the schedule, and whose midnight ends a day (UTC)")
    parser.add_argument("--name", metavar="NAME", help="deployments are called nightly-NAME and so on")
    options.add_nights(parser)
    options.add_run(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped; then runs that are under way have half a minute to save what is in flight."""
    from combee_core.cli import launch

    served = playbooks(args)
    for file, _ in served:
        launch.warn_if_simulated(file.request, args.model)
    flows, address = launch.serving(), launch.ui_address()
    # Prefect writes down where a flow lies as seen from here, and its runs start here.
    os.chdir(launch.checkout())
    made = [one for file, label in served for one in flows.deployments(file, label)]
    runner, ids = flows.register(made)
    for name, known_as in ids.items():
        launch.note(f"{name}: {address}/deployments/deployment/{known_as}")
    if args.json:
        print(json.dumps({"deployments": ids}), flush=True)
    flows.wait(runner)
    launch.note("stopped; schedules stay active, and what comes due until the next start is then run late")
    return 0


def playbooks(args: argparse.Namespace) -> list[tuple[RunFile, str]]:
    """What is served: each playbook's configuration, and what tells its deployments from the others'.

    Raises `UsageError` where nothing does, and for everything else that is wrong and can be seen without a server.
    """
    files = [_file(args, path) for path in args.config or [None]]
    twice = [name for name, number in Counter(file.playbook for file in files).items() if number > 1]
    if twice:
        raise UsageError(f"two of these files are for the playbook {twice[0]}; one night learns it, not two")
    several = len(files) > 1
    return [(file, "-".join(filter(None, (args.name, file.playbook if several else "")))) for file in files]


def _file(args: argparse.Namespace, path: str | None) -> RunFile:
    """One playbook's configuration: its file, and the options over it."""
    from combee_core.cli import launch
    from combee_core.run_file import RunFile

    given = argparse.Namespace(**{**vars(args), "config": path})
    uris = (args.traces,) if args.traces else None
    request = launch.check(settings.request_of(given, uris=uris, timezone=args.timezone), may_be_empty=True)
    schedule = settings.schedule_of(args, run_files.run_file(path).schedule)
    return RunFile(**dict(request), nights=settings.nights_of(given), schedule=schedule)
