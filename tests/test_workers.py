"""Several process workers on one Prefect API and one store, each running a night of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from command import kill
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName
from prefect.client.schemas.objects import FlowRun
from simserver import ROOT, SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.runs import Run
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Version, Versions
from flows.epoch import epoch

POOL = "several-workers"
DAY = date(2026, 3, 2)
PLAYBOOKS = ("sales", "support")
TRACES = 12
FOR_EVER = 900.0
"""Seconds after which nothing will come any more; nothing here depends on how long it takes."""


@dataclass(frozen=True)
class Prefect:
    """Runs the `prefect` command with a home of its own; logs go to `folder`."""

    api: str
    folder: Path

    def __call__(self, *args: str) -> str:
        done = subprocess.run(self._command(args), cwd=ROOT, env=self._environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def worker(self, name: str) -> Iterator[Path]:
        """A worker that runs one flow at a time and looks for work every second; its log, once it has started."""
        log = self.folder / f"{name}.log"
        command = self._command(
            ["worker", "start", "--pool", POOL, "--type", "process", "--name", name, "--limit", "1"]
        )
        with (
            log.open("w") as out,
            subprocess.Popen(
                command, cwd=ROOT, env=self._environ, stdout=out, stderr=out, text=True, start_new_session=True
            ) as process,
        ):
            try:
                while "started!" not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.2)
                yield log
            finally:
                process.terminate()
                # Under load a worker of Prefect's can take minutes to end, when its runs have ended long ago.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                if process.poll() is None:
                    kill(process)

    @staticmethod
    def _command(args: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "prefect", "--no-prompt", *args]

    @property
    def _environ(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COMBEE_"))}
        own = {"PREFECT_API_URL": self.api, "PREFECT_HOME": str(self.folder / "home"), "COMBEE_CHECKOUT": str(ROOT)}
        return {**kept, **own, "OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "PREFECT_WORKER_QUERY_SECONDS": "1"}


@pytest.fixture
def prefect(prefect_api: str, tmp_path: Path) -> Prefect:
    """The command, on the tests' server."""
    return Prefect(prefect_api, tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model that counts what it is asked."""
    with simulated_server(tmp_path, latency=0.1) as running:
        yield running


def request_for(playbook: str, store: str, tmp_path: Path, model: ModelSettings) -> RunRequest:
    """A night of its own traces for each playbook."""
    path = tmp_path / f"{playbook}.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, PLAYBOOKS.index(playbook), DAY))
    settings = RunSettings(batch_size=8, model=model)
    return RunRequest(playbook=playbook, store=store, source=Source(uris=(str(path),), day=DAY), settings=settings)


def deployments(requests: Sequence[RunRequest]) -> dict[str, Any]:
    """The project's own deployment file in our pool, with a nightly for each playbook and without a schedule."""
    given = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())
    nightly = next(one for one in given["deployments"] if one["name"] == "nightly")
    others = [{**one, "work_pool": {"name": POOL}} for one in given["deployments"] if one is not nightly]
    given["deployments"] = others + [
        {
            **{key: value for key, value in nightly.items() if key != "schedules"},
            "name": f"nightly-{request.playbook}",
            "work_pool": {"name": POOL},
            "parameters": {**nightly["parameters"], "request": request.model_dump(mode="json", exclude_none=True)},
        }
        for request in requests
    ]
    return dict(given)


@contextmanager
def nobody_done(server: SimulatedServer) -> Iterator[None]:
    """Every call is told to come back later, so that no run ends before both have begun."""
    server.set_faults("kind=429,retry_after=0.5")
    yield
    server.set_faults()


def begun(log: Path) -> int:
    """Flow runs that a worker has begun."""
    return log.read_text().count("Beginning flow run 'nightly-")


def ordered(names: Sequence[str]) -> list[UUID]:
    """Flow runs of these deployments, due now."""
    with get_client(sync_client=True) as client:
        deployed = [client.read_deployment_by_name(f"nightly/{name}") for name in names]
        return [client.create_flow_run_from_deployment(one.id).id for one in deployed]


def deployed() -> set[str]:
    """The names of what is deployed to our pool, each with a limit of one run."""
    with get_client(sync_client=True) as client:
        pool = WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL]))
        found = client.read_deployments(work_pool_filter=pool)
    assert all(one.global_concurrency_limit and one.global_concurrency_limit.limit == 1 for one in found)
    return {one.name for one in found}


def until_all(holds: Callable[[FlowRun], bool], ids: Sequence[UUID]) -> list[FlowRun]:
    """These flow runs, as soon as it holds for each of them."""
    deadline = time.monotonic() + FOR_EVER
    with get_client(sync_client=True) as client:
        while True:
            runs = [client.read_flow_run(one) for one in ids]
            if all(map(holds, runs)):
                return runs
            assert time.monotonic() < deadline, [run.state for run in runs]
            time.sleep(0.5)


def is_running(run: FlowRun) -> bool:
    assert not has_ended(run), run.state
    return run.state is not None and run.state.is_running()


def has_ended(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def answered(server: SimulatedServer) -> Counter[str]:
    """How often each prompt was answered, by hash."""
    return Counter(
        line["prompt_sha"]
        for line in server.log()
        if line["event"] == "end" and line["status"] == 200 and line["stage"]
    )


def accounted(store: str) -> Counter[str]:
    """Accepted answers by stage, as the runs of a store have recorded them."""
    runs = [Run(open_store(store), key.split("/")[1]) for key in open_store(store).list("runs/") if "plan" in key]
    receipts = [receipt for run in runs for state in run.states() for receipt in state.receipts]
    return Counter(receipt.stage for receipt in receipts if receipt.accepted)


def latest(store: str, playbook: str) -> Version:
    found = Versions(open_store(store), playbook).latest()
    assert found is not None
    return found


def test_two_workers_learn_two_playbooks_in_one_store_and_every_answer_is_paid_for_once(
    prefect: Prefect, server: SimulatedServer, tmp_path: Path
) -> None:
    store = f"file://{tmp_path}/store"
    model = ModelSettings(
        model="openai/simulated/overload", api_base=server.url, max_waits=10_000, wait_budget=FOR_EVER, hedge=0
    )
    requests = [request_for(playbook, store, tmp_path, model) for playbook in PLAYBOOKS]
    names = [f"nightly-{playbook}" for playbook in PLAYBOOKS]
    file = tmp_path / "prefect.yaml"
    file.write_text(yaml.safe_dump(deployments(requests)))

    prefect("work-pool", "create", "--type", "process", POOL)
    prefect("deploy", "--prefect-file", str(file), "--all")
    assert deployed() >= {*names, "backfill", "profile"}
    with ExitStack() as workers:
        logs = [workers.enter_context(prefect.worker(f"worker-{number}")) for number in (1, 2)]
        with nobody_done(server):
            runs = ordered(names)
            until_all(is_running, runs)
        ended = until_all(has_ended, runs)
        assert [run.state_name for run in ended] == ["Completed"] * 2, [log.read_text()[-2000:] for log in logs]
        shares, once = [begun(log) for log in logs], answered(server)
        again = until_all(has_ended, ordered(names))

    assert [run.state_name for run in again] == ["Completed"] * 2, [log.read_text()[-2000:] for log in logs]
    assert shares == [1, 1], "each worker had one of the first two"
    assert answered(server) == once, "the second order of the same nights asked for nothing, whoever had them before"
    assert set(once.values()) == {1}
    assert accounted(store)["reflect"] == TRACES * len(PLAYBOOKS)
    assert sum(accounted(store).values()) == sum(once.values()), "every answer is in a run's records, and used there"
    for request in requests:
        settings = request.settings.model_copy(update={"model": ModelSettings()})
        alone = request.model_copy(update={"store": f"file://{tmp_path}/alone", "settings": settings})
        assert latest(store, request.playbook).digest == epoch(alone).digest
        assert latest(store, request.playbook).version == 1
