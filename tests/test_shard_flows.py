"""Whole flows with their stages cut into shards, and with a reduce of more than one merge call."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import Combee, Done
from simserver import SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.client import Client
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.inline import Inline
from combee_core.learners import load_learner
from combee_core.records import Batch, RunResult, State
from combee_core.saving import SavedAnswers
from combee_core.scoring import exact
from combee_core.shards import SEEN
from combee_core.simulation.day import day, day_jsonl
from combee_core.simulation.model import SimulatedModel
from combee_core.simulation.world import World
from flows.epoch import epoch

TRACES, DAY = 40, date(2026, 3, 2)
REDUCES: dict[str, dict[str, Any]] = {
    "paper": {"grouping": "paper", "merge": "paper"},
    "three levels": {"grouping": "bounded", "max_group": 4, "merge": "paper", "levels": 3},
    "clusters": {"grouping": "bounded", "max_group": 4, "merge": "cluster"},
}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A file of 40 runs of one day."""
    path = tmp_path / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, 0, DAY))
    return path


def learned(traces: Path, **settings: Any) -> Any:
    """The result of one batch, in a store of its own."""
    store = f"file://{traces.parent}/{uuid.uuid4().hex}"
    own = RunSettings(**{"batch_size": TRACES, **settings})
    return epoch(RunRequest(playbook="p", store=store, source=Source(uris=(str(traces),)), settings=own))


def inline(settings: RunSettings) -> State:
    """The same batch without an orchestrator."""
    answers = SavedAnswers(open_store(f"memory://{uuid.uuid4().hex}"))
    learner = load_learner("ace")
    client = Client(SimulatedModel(), answers, settings.model, learner.fingerprint, seed=settings.seed)
    by_hand = Inline(learner, client, settings, exact)
    batch = Batch(number=1, trajectories=day(World(0), TRACES, 0))
    return asyncio.run(by_hand.iterate(batch, learner.empty()))


class Ended(logging.Handler):
    """Names of the tasks that have ended, as Prefect's log of them has it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Note the task that the record is about."""
        self.names.add(getattr(record, "task_run_name", ""))

    def of(self, stage: str) -> list[str]:
        """Those of a stage, sorted."""
        return sorted(name for name in self.names if name.startswith(f"{stage}-"))


@pytest.fixture
def tasks(prefect_api: str) -> Iterator[Ended]:
    """The tasks of the flows that the test runs."""
    ended, logger = Ended(), logging.getLogger("prefect.task_runs")
    level = logger.level
    logger.setLevel("INFO")
    logger.addHandler(ended)
    yield ended
    logger.removeHandler(ended)
    logger.setLevel(level)


# in process


def test_how_items_are_cut_changes_the_tasks_and_nothing_else(traces: Path, tasks: Ended) -> None:
    one_by_one = learned(traces)
    assert tasks.of("reflect") == [f"reflect-day0-{number:05d}" for number in range(1, TRACES + 1)]
    assert tasks.of("curate") == [f"curate-g{number:02d}" for number in range(1, 7)]
    tasks.names.clear()
    together = learned(traces, shard_size=16)
    assert tasks.of("reflect") == ["reflect-s0001", "reflect-s0002", "reflect-s0003"]
    assert tasks.of("curate") == ["curate-s0001"]
    assert (together.digest, together.accounting) == (one_by_one.digest, one_by_one.accounting)
    assert together.model_calls == one_by_one.model_calls


def test_a_large_batch_makes_few_tasks(tmp_path: Path, tasks: Ended) -> None:
    many = SEEN + 60
    path = tmp_path / "many.jsonl"
    path.write_bytes(day_jsonl(World(0), many, 0, DAY))
    result = learned(path, batch_size=many)
    assert result.accounting.learned == many
    assert result.model_calls["reflect"] == many
    assert tasks.of("reflect") == [f"reflect-s{number:04d}" for number in range(1, 17)]


def test_samples_are_solved_eight_to_a_task(tmp_path: Path, tasks: Ended) -> None:
    path = tmp_path / "samples.jsonl"
    rows = [{"context": sample.context, "target": sample.target} for sample in World(0).sample(20, 0, "s")]
    path.write_text("\n".join(map(json.dumps, rows)))
    source = Source(kind="samples", uris=(str(path),), scorer="number")
    settings = RunSettings(batch_size=20)
    result = epoch(RunRequest(store=f"file://{tmp_path}/store", source=source, settings=settings))
    assert result.model_calls["rollout"] == result.model_calls["reflect"] == 20
    assert tasks.of("rollout") == ["rollout-s0001", "rollout-s0002", "rollout-s0003"]


@pytest.mark.parametrize("form", REDUCES)
def test_a_flow_makes_what_the_stages_make_without_it(traces: Path, tasks: Ended, form: str) -> None:
    result = learned(traces, shard_size=8, **REDUCES[form])
    state = inline(RunSettings(batch_size=TRACES, **REDUCES[form]))
    learner = load_learner("ace")
    assert result.digest == learner.digest(learner.load(state.state))
    merges = sum(receipt.stage == "merge" for receipt in state.receipts)
    assert result.model_calls["merge"] == merges
    assert result.model_calls["curate"] == state.calls
    assert bool(tasks.of("merge")) is (merges > 0)
    assert (merges > 1) is (form != "paper")


def test_what_is_alike_in_a_flow_is_for_the_setting_to_say(traces: Path, tasks: Ended) -> None:
    usual = inline(RunSettings(batch_size=TRACES, **REDUCES["clusters"]))
    nothing_is = learned(traces, alike=1.0, **REDUCES["clusters"])
    assert nothing_is.model_calls["merge"] < sum(receipt.stage == "merge" for receipt in usual.receipts)


def test_rounds_of_merging_are_numbered_through(traces: Path, tasks: Ended) -> None:
    result = learned(traces, **REDUCES["three levels"])
    merges = result.model_calls["merge"]
    assert merges > 2
    *first, last = tasks.of("merge")
    assert first == [f"merge-m{number:02d}" for number in range(1, merges)]
    assert last == f"merge-r2-m{merges:02d}"


def test_merge_calls_have_the_same_names_in_a_flow_and_without_it(traces: Path, tasks: Ended) -> None:
    learned(traces, **REDUCES["three levels"])
    state = inline(RunSettings(batch_size=TRACES, **REDUCES["three levels"]))
    assert tasks.of("merge") == [receipt.item for receipt in state.receipts if receipt.stage == "merge"]


# over HTTP, with faults


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model."""
    with simulated_server(tmp_path) as running:
        yield running


def learn(combee: Combee, server: SimulatedServer, traces: Path, *more: object) -> Done:
    model = ("--model", "openai/simulated/overload", "--api-base", server.url, "--retry-delay", 0.05)
    size = ("--batch-size", TRACES, "--shard-size", 16, "--merge", "paper", "--json")
    return combee("learn", traces, "--playbook", "p", "--store", f"file://{traces.parent}/store", *model, *size, *more)


def test_a_group_that_fails_in_a_shard_is_named_and_a_rerun_asks_for_it_alone(
    combee: Combee, server: SimulatedServer, traces: Path
) -> None:
    server.set_faults("stage=curate,group=3,kind=500")
    failed = learn(combee, server, traces, "--retries", 2)
    assert failed.code == 1
    assert (failed.json["error"]["stage"], failed.json["error"]["item"]) == ("curate", "curate-g03")
    assert "curate-g03 failed: ModelFault" in failed.json["error"]["message"]
    before = server.asked()
    assert sorted(before.values()) == [*[1] * (len(before) - 1), 3], "a retry repeats what failed, and that alone"

    server.set_faults()
    rerun = combee("rerun", failed.json["flow_run_id"], "--json").json
    assert rerun["model_calls"] == {"rollout": 0, "reflect": 0, "curate": 1, "merge": 1}
    assert sum((server.asked() - before).values()) == 2


def test_a_reflection_that_fails_in_a_shard_is_one_failed_trace_among_many(
    combee: Combee, server: SimulatedServer, traces: Path
) -> None:
    unlucky = day(World(0), TRACES, 0)[20]
    words = re.search(r"an amount of \S+ over \S+ days", unlucky.task)
    assert words
    server.set_faults(f"stage=reflect,contains={words[0]},kind=500")
    result = learn(combee, server, traces, "--retries", 1).json
    assert result["accounting"]["failed"] == 1
    assert result["accounting"]["learned"] == TRACES - 1
    (recorded,) = traces.parent.glob("store/runs/*/result.json")
    fates = {fate.trace_id: fate for fate in RunResult.model_validate_json(recorded.read_bytes()).fates}
    assert "ModelFault" in fates[unlucky.trace_id].reason
    assert sorted(server.asked().values())[-2:] == [1, 2]
