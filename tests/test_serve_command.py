"""`combee serve` from outside: a run ordered by the API, stopped with the server process, gone on with by the next."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from command import Combee, kill
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Scheduled
from seaweed import Seaweed
from simserver import SimulatedServer, simulated_server

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

DAY = "2026-03-02"
TRACES = 20
FOR_EVER = 300.0
"""Seconds after which nothing will come any more; nothing here depends on how long it takes."""

CONFIGURATION = """
playbook = "support"
store = "{store}"
[source]
uris = ["{traces}"]
timezone = "Europe/Berlin"
[settings]
batch_size = {size}
merge = "paper"
[settings.model]
model = "openai/simulated/overload"
api_base = "{url}"
concurrency = 4
max_concurrency = 4
hedge = 0
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model whose answers take long enough to be interrupted."""
    with simulated_server(tmp_path, latency=0.3) as running:
        yield running


@contextmanager
def serving(combee: Combee, file: Path, name: str, stop: signal.Signals) -> Iterator[dict[str, str]]:
    """The command while it serves, by the deployments' ids; stopped with a signal, and it must end well."""
    process = combee.start("serve", "--config", file, "--name", name, "--json")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield json.loads(line)["deployments"]
        process.send_signal(stop)
        err = process.communicate(timeout=FOR_EVER)[1]
        assert (process.returncode, "schedules stay active" in err) == (0, True), err
    finally:
        if process.poll() is None:
            kill(process)


def until(holds: Callable[[FlowRun], bool], run: UUID) -> FlowRun:
    """The flow run, as soon as it holds for it."""
    deadline = time.monotonic() + FOR_EVER
    with get_client(sync_client=True) as client:
        while True:
            seen = client.read_flow_run(run)
            if holds(seen):
                return seen
            assert time.monotonic() < deadline, seen.state
            time.sleep(0.3)


def is_final(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def ordered(deployment: str, **source: Any) -> UUID:
    """A run of the deployment with its own values, but for some of the source."""
    with get_client(sync_client=True) as client:
        parameters = client.read_deployment(UUID(deployment)).parameters
        parameters["request"]["source"] |= source
        return client.create_flow_run_from_deployment(UUID(deployment), parameters=parameters).id


def retried(run: UUID) -> None:
    """What the Retry button of the UI does."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run, Scheduled(name="AwaitingRetry"))


def schedule_of(deployment: str) -> tuple[str, str | None, bool]:
    with get_client(sync_client=True) as client:
        (one,) = client.read_deployment(UUID(deployment)).schedules
    return one.schedule.cron, one.schedule.timezone, one.active  # type: ignore[union-attr]


def test_a_served_night_on_s3_is_stopped_with_its_server_and_gone_on_with_by_the_next(
    combee: Combee, prefect_api: str, s3_uri: str, s3_server: Seaweed, server: SimulatedServer, tmp_path: Path
) -> None:
    (tmp_path / "traces.jsonl").write_bytes(day_jsonl(World(0), TRACES, 0, date(2026, 3, 2)))
    file, name = tmp_path / "night.toml", uuid.uuid4().hex[:8]
    values = {"store": s3_uri, "traces": "traces.jsonl", "size": TRACES, "url": server.url}
    file.write_text(CONFIGURATION.format(**values))
    combee = replace(combee, environ={**s3_server.environment(), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}, cwd=tmp_path)

    with serving(combee, file, name, signal.SIGTERM) as ids:
        nightly = ids[f"nightly/nightly-{name}"]
        run = ordered(nightly, day=DAY)
        until(lambda _: len(server.asked()) >= 6, run)
    stopped = until(is_final, run)
    answered = sum(line["event"] == "end" and line["status"] == 200 for line in server.log() if line["stage"])

    assert stopped.state_name == "Cancelled"
    assert answered < TRACES, "there was something left to do"
    assert schedule_of(nightly) == ("30 3 * * *", "Europe/Berlin", True)

    with serving(combee, file, name, signal.SIGINT) as again:
        assert again == ids
        assert schedule_of(nightly) == ("30 3 * * *", "Europe/Berlin", True)
        retried(run)
        ended = until(is_final, run)

    assert ended.state_name == "Completed"
    assert schedule_of(nightly)[2]
    shown = combee("playbook", "show", "support", "--store", s3_uri, "--json").json
    assert shown["version"] == 1
    assert set(server.asked().values()) == {1}, "what was in flight at the stop was saved"
