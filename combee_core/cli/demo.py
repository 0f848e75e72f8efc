"""`combee demo`: a simulated night and a comparison, offline."""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from combee_core.cli import launch
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.errors import CombeeError, UsageError
from combee_core.records import RunResult

FOLDER = Path("combee-demo")
TRACES = 30
BATCH_SIZE = 40
_MARK = ".combee-demo"
_SHOWN = 8


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("demo", help="a simulated night and a comparison, offline")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another simulated world (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout and nothing else")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """The nightly flow on a day of traces, then four ways of learning from the same samples."""
    say = (lambda _: None) if args.json else print
    say("Everything here is simulated: a stand-in answers in the place of a model. No key, no network, no cost.\n")
    store = _fresh_folder()
    day = datetime.now(UTC).date() - timedelta(days=1)
    _write_day(args.seed, day)
    flows = launch.terminal(quiet=True)
    say(f"1. A night: the nightly flow learns from {TRACES} traces of {day}.\n")
    night = _flow(flows, "nightly", _nightly(store, args.seed, day))
    say("\n".join(_learned(store, night)))
    say("\n2. Four ways to learn from the same 240 samples, judged on 400 others (about a minute).\n")
    rows = _compare(flows, store, args.seed)
    report = {
        "simulated": True,
        "seed": args.seed,
        "held_out": 400,
        "nightly": {
            "traces": night.accounting.total,
            "bullets": sum(1 for _ in _bullets(store, night.playbook)),
            "flow_run_id": night.flow_run_id,
        },
        "methods": [row.model_dump() for row in rows],
    }
    if args.json:
        print(json.dumps(report))
    else:
        print("\n".join(_table(rows)))
        print(f"\nPrefect UI   {launch.ui_address()}/runs/flow-run/{night.flow_run_id}")
        print("stop it      combee server down")
        print(f"look closer  combee playbook show demo --store {store}")
    return 0


def _fresh_folder() -> str:
    """Empty our own folder; never one that we did not make."""
    foreign = FOLDER.is_symlink() or (FOLDER.exists() and not FOLDER.is_dir())
    if foreign or (FOLDER.exists() and any(FOLDER.iterdir()) and not (FOLDER / _MARK).exists()):
        raise UsageError(f"{FOLDER.resolve()} was not made by the demo; move it away or run this in another folder")
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "traces").mkdir(parents=True)
    (FOLDER / _MARK).touch()
    return f"file://{(FOLDER / 'store').resolve()}"


def _write_day(seed: int, day: date) -> None:
    from combee_core.simulation.day import day_jsonl
    from combee_core.simulation.world import World

    (FOLDER / "traces" / f"{day}.jsonl").write_bytes(day_jsonl(World(seed), TRACES, seed, day))


def _nightly(store: str, seed: int, day: date) -> RunRequest:
    return RunRequest(
        playbook="demo",
        store=store,
        source=Source(uris=(str((FOLDER / "traces").resolve()),), day=day),
        settings=RunSettings(batch_size=BATCH_SIZE, seed=seed),
    )


def _flow(flows: Any, name: str, request: RunRequest) -> RunResult:
    result, error = flows.start(name, request)
    if error is not None:
        raise CombeeError(f"the {name} flow failed: {error}") from error
    done: RunResult = result
    return done


def _bullets(store: str, playbook: str) -> Any:
    from combee_core.adapters.stores import open_store
    from combee_core.playbook import Playbook
    from combee_core.versions import Versions

    version = Versions(open_store(store), playbook).latest()
    return Playbook.model_validate(version.state).bullets if version else iter(())


def _learned(store: str, night: RunResult) -> list[str]:
    from combee_core.cli.show import bullet_lines, run_lines

    bullets = list(_bullets(store, night.playbook))
    lines = [line for bullet in bullets[:_SHOWN] for line in bullet_lines(bullet)]
    more = [f"… and {len(bullets) - _SHOWN} more bullets"] if len(bullets) > _SHOWN else []
    return [*run_lines(night), "", *lines, *more]


def _compare(flows: Any, store: str, seed: int) -> list[Any]:
    from combee_core.adapters.memory_store import MemoryStore
    from combee_core.adapters.workshop import Place, calls, open_workshop
    from combee_core.client import Client
    from combee_core.learners import load_learner
    from combee_core.saving import SavedAnswers
    from combee_core.simulation.experiment import TRAINING, Experiment
    from combee_core.simulation.model import SimulatedModel
    from combee_core.simulation.world import World

    settings = RunSettings(batch_size=BATCH_SIZE, seed=seed)
    learner = load_learner("ace")
    answers = SavedAnswers(MemoryStore(f"demo-{seed}"))
    client = Client(SimulatedModel(), answers, settings.model, learner.fingerprint, seed)
    experiment = Experiment(World(seed), learner, client, settings)
    request = RunRequest(
        playbook="combee",
        store=store,
        source=Source(kind="samples", uris=(f"world:{TRAINING}:{seed}",)),
        settings=settings,
    )
    combee = _flow(flows, "epoch", request)
    run = open_workshop(Place(store=store, run=combee.run)).run
    states = run.states()
    learned = sum(combee.model_calls.values())
    return [
        calls(experiment.row("none", 0, learner.empty(), [], 0)),
        calls(experiment.baseline("sequential", 1)),
        calls(experiment.baseline("naive", BATCH_SIZE, naive=True)),
        calls(experiment.row("combee", BATCH_SIZE, learner.load(states[-1].state), states, learned)),
    ]


def _table(rows: list[Any]) -> list[str]:
    head = f"{'method':<12}{'batch':>6}{'bullets':>9}{'tokens':>8}{'accuracy':>10}{'calls':>7}{'sim. minutes':>14}"
    return [
        head,
        "-" * len(head),
        *(
            f"{row.name:<12}{row.batch_size or '-':>6}{row.bullets:>9}{row.playbook_tokens:>8}"
            f"{row.accuracy:>10.1%}{row.model_calls:>7}{row.simulated_minutes:>14.1f}"
            for row in rows
        ),
    ]
