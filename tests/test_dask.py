"""The same flows with their tasks in the workers of a Dask cluster: a scheduler and two processes on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import cloudpickle
import pytest
from distributed import LocalCluster
from prefect.task_runners import ThreadPoolTaskRunner
from simserver import ROOT, SimulatedServer, simulated_server

from combee_core.adapters.stores import open_store
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import UsageError
from combee_core.records import RunResult
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.epoch import epoch
from flows.terminal import restart, start
from tasks import stages
from tasks.runners import runner_for

TRACES, PROCESSES = 16, 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler and two worker processes; one that dies is started again."""
    with LocalCluster(
        n_workers=PROCESSES, threads_per_worker=16, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    """A simulated model that counts what it is asked."""
    with simulated_server(tmp_path) as running:
        yield running


@pytest.fixture
def request_of_a_day(server: SimulatedServer, tmp_path: Path) -> RunRequest:
    """A day of runs in one batch, in shards of three, with the limits shared by all processes."""
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), TRACES, 0, date(2026, 3, 2)))
    model = ModelSettings(
        model="openai/simulated/overload", api_base=server.url, processes=PROCESSES, retries=1, retry_delay=0.01
    )
    return RunRequest(
        playbook="p",
        store=f"file://{tmp_path}/threads",
        source=Source(uris=(str(tmp_path / "day.jsonl"),)),
        settings=RunSettings(batch_size=TRACES, shard_size=3, model=model),
    )


@pytest.fixture
def on_dask(request_of_a_day: RunRequest, cluster: LocalCluster, tmp_path: Path) -> RunRequest:
    """The same, in another store and on the cluster."""
    settings = request_of_a_day.settings.model_copy(update={"dask": cluster.scheduler_address})
    return request_of_a_day.model_copy(update={"settings": settings, "store": f"file://{tmp_path}/dask"})


def writers(request: RunRequest, result: RunResult) -> set[str]:
    """The processes that have written receipts of a run."""
    folder = f"runs/{result.run}/receipts/"
    return {key.removeprefix(folder).split("-")[0] for key in open_store(request.store).list(folder)}


def calls(server: SimulatedServer) -> dict[str, int]:
    return {stage: count["calls"] for stage, count in server.stats()["stages"].items() if stage != "other"}


def some(counts: dict[str, int]) -> dict[str, int]:
    return {stage: count for stage, count in counts.items() if count}


run_on_the_server = pytest.mark.usefixtures("prefect_api")


@run_on_the_server
def test_processes_learn_what_threads_learn_and_every_call_is_counted_once(
    request_of_a_day: RunRequest, on_dask: RunRequest, server: SimulatedServer
) -> None:
    far = epoch(on_dask)
    assert some(far.model_calls) == calls(server)
    assert set(server.asked().values()) == {1}
    near = epoch(request_of_a_day)
    assert (far.digest, far.accounting, far.model_calls) == (near.digest, near.accounting, near.model_calls)
    assert far.tokens == near.tokens
    assert len(writers(on_dask, far)) == PROCESSES
    assert len(writers(request_of_a_day, near)) == 1


@run_on_the_server
def test_a_group_that_fails_is_named_and_a_rerun_asks_for_it_alone(
    on_dask: RunRequest, server: SimulatedServer
) -> None:
    server.set_faults("stage=curate,group=3,kind=500")
    failed, error = start("epoch", on_dask)
    assert failed.error is not None
    assert (failed.error.stage, failed.error.item) == ("curate", "curate-g03")
    assert "curate-g03 failed: ModelFault" in str(error)
    assert failed.version is None
    before = calls(server)

    server.set_faults()
    result, error = restart(failed.flow_run_id)
    assert error is None
    new = {stage: count - before.get(stage, 0) for stage, count in calls(server).items()}
    assert some(new) == some(result.model_calls) == {"curate": 1, "merge": 1}


@run_on_the_server
def test_a_wrong_key_stops_the_run_in_every_process(on_dask: RunRequest, server: SimulatedServer) -> None:
    server.set_faults("stage=reflect,kind=401")
    failed, error = start("epoch", on_dask)
    assert type(error).__name__ == "ModelUnusable"
    assert failed.accounting.deferred == TRACES
    assert calls(server).get("curate", 0) == 0


@run_on_the_server
def test_a_killed_worker_is_replaced_and_what_it_had_saved_is_not_asked_for_again(
    on_dask: RunRequest, cluster: LocalCluster, tmp_path: Path
) -> None:
    in_flight = 2
    with simulated_server(tmp_path, latency=0.5) as slow, ThreadPoolExecutor(1) as aside:
        own = {"api_base": slow.url, "concurrency": in_flight * PROCESSES, "max_concurrency": in_flight * PROCESSES}
        model = on_dask.settings.model.model_copy(update=own)
        settings = on_dask.settings.model_copy(update={"model": model})
        killed = aside.submit(kill_one_when, slow, TRACES // 2, cluster)
        result = epoch(on_dask.model_copy(update={"settings": settings}))
        assert killed.result(), "it was killed in the middle"
        asked = slow.asked()
    assert result.accounting.learned == TRACES
    assert max(asked.values()) <= 2
    assert sum(asked.values()) - len(asked) <= in_flight, "paid for twice: only what was in flight"


def kill_one_when(server: SimulatedServer, calls_made: int, cluster: LocalCluster) -> bool:
    """SIGKILL to one worker process once the server has been asked so often; whether reflecting was under way then."""
    while server.stats()["total"] < calls_made:
        time.sleep(0.02)
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    return "curate" not in server.stats()["stages"]


def test_without_an_address_tasks_run_in_threads_as_many_as_calls_may_be_in_flight() -> None:
    runner = runner_for(RunSettings(model=ModelSettings(max_concurrency=500)))
    assert isinstance(runner, ThreadPoolTaskRunner)
    assert runner == ThreadPoolTaskRunner(max_workers=500)
    assert runner_for(RunSettings()) == ThreadPoolTaskRunner(max_workers=256)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://127.0.0.1:none", "tcp://no.such.host:8786"])
def test_a_scheduler_that_is_not_there_is_wrong_use_with_the_way_out(address: str) -> None:
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at .*start one with `dask scheduler`"):
        runner_for(RunSettings(dask=address))


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_where_dask_is_missing_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["prefect_dask"] = None
from combee_core.config import RunSettings
from tasks.runners import runner_for
try:
    runner_for(RunSettings(dask="tcp://127.0.0.1:8786"))
except Exception as error:
    print(type(error).__name__, error)
"""
    assert fresh(code) == "UsageError prefect-dask is missing: pip install 'combee-pipeline[dask]'"


def test_flows_load_no_dask_without_need() -> None:
    code = "import sys, flows.nightly; print(*(m for m in ('dask', 'distributed', 'prefect_dask') if m in sys.modules))"
    assert fresh(code) == ""


def test_a_task_travels_to_a_worker_as_little_code_and_no_client() -> None:
    travelling = cloudpickle.dumps(stages.reflect.with_options(retries=2))
    assert len(travelling) < 20_000
    assert b"_thread" not in travelling
