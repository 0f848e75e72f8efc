"""Several process workers on one Prefect API and one store, each running a night of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from simserver import ROOT, SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Version, Versions
from flows.epoch import epoch

POOL = "several-workers"
DAY = date(2026, 3, 2)
PLAYBOOKS = ("sales", "support")
TRACES = 12


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
                command, cwd=ROOT, env=self._environ, stdout=out, stderr=out, start_new_session=True
            ) as process,
        ):
            try:
                while "started!" not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.2)
                yield log
            finally:
                process.terminate()
                process.wait(timeout=60)

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
    """The project's own deployment file, with a deployment for each playbook and without a schedule."""
    given = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())
    nightly = next(one for one in given["deployments"] if one["name"] == "nightly")
    given["deployments"] = [
        {
            **{key: value for key, value in nightly.items() if key != "schedules"},
            "name": f"nightly-{request.playbook}",
            "work_pool": {"name": POOL},
            "parameters": {"request": request.model_dump(mode="json")},
        }
        for request in requests
    ]
    return dict(given)


def run_all(names: Sequence[str]) -> list[FlowRun]:
    """Runs of these deployments, when they have ended."""
    with get_client(sync_client=True) as client:
        made = [
            client.create_flow_run_from_deployment(client.read_deployment_by_name(f"nightly/{name}").id)
            for name in names
        ]
        deadline = time.monotonic() + 240
        while True:
            runs = [client.read_flow_run(run.id) for run in made]
            if all(run.state and run.state.is_final() for run in runs):
                return runs
            assert time.monotonic() < deadline, [run.state for run in runs]
            time.sleep(0.5)


def latest(store: str, playbook: str) -> Version:
    found = Versions(open_store(store), playbook).latest()
    assert found is not None
    return found


def test_two_workers_learn_two_playbooks_in_one_store_and_ask_nothing_twice(
    prefect: Prefect, server: SimulatedServer, tmp_path: Path
) -> None:
    store = f"file://{tmp_path}/store"
    model = ModelSettings(model="openai/simulated/overload", api_base=server.url)
    requests = [request_for(playbook, store, tmp_path, model) for playbook in PLAYBOOKS]
    file = tmp_path / "prefect.yaml"
    file.write_text(yaml.safe_dump(deployments(requests)))

    prefect("work-pool", "create", "--type", "process", POOL)
    prefect("deploy", "--prefect-file", str(file), "--all")
    with ExitStack() as workers:
        logs = [workers.enter_context(prefect.worker(f"worker-{number}")) for number in (1, 2)]
        runs = run_all([f"nightly-{playbook}" for playbook in PLAYBOOKS])

    assert [run.state_name for run in runs] == ["Completed"] * 2, [log.read_text()[-2000:] for log in logs]
    begun = [log.read_text().count("Beginning flow run 'nightly-") for log in logs]
    assert begun == [1, 1], "each worker had one"
    asked = server.asked()
    assert set(asked.values()) == {1}
    assert server.stats()["stages"]["reflect"]["calls"] == TRACES * len(PLAYBOOKS)
    for request in requests:
        settings = request.settings.model_copy(update={"model": ModelSettings()})
        alone = request.model_copy(update={"store": f"file://{tmp_path}/alone", "settings": settings})
        assert latest(store, request.playbook).digest == epoch(alone).digest
        assert latest(store, request.playbook).version == 1
