"""Two API servers and one for background services, on PostgreSQL and Redis, as the README sets them up."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, Combee, kill
from hooks import hook
from missing import missing
from ports import free_port
from postgres import Postgres, postgres, postgres_programs
from redis_broker import redis, redis_program
from simserver import simulated_server

from combee_core.adapters.prefect_api import PrefectApi
from combee_core.adapters.prefect_firing import firing
from combee_core.errors import CombeeError
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

_BLOCK = re.compile(r"\*\*Several API servers\.\*\*.*?```console\n(.*?)```", re.DOTALL)
_SAID = re.compile(r"\b(PREFECT_\w+)=(\S+)")
_PLACES = {
    "PREFECT_SERVER_DATABASE_CONNECTION_URL",
    "PREFECT_REDIS_MESSAGING_HOST",
    "PREFECT_SERVER_DOCKET_URL",
}
"""What names a machine of the reader's."""

TRACES = 6
DAY = ("--day", "2026-03-02")


def readme() -> dict[str, str]:
    """The variables that the README sets for the servers."""
    block = _BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert block, "the paragraph is where the test looks for it"
    return dict(_SAID.findall(block[1]))


def until(found: Callable[[], Any], seconds: float = 240) -> Any:
    """What `found` gives once it gives anything."""
    deadline = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(1)
    return value


@dataclass(frozen=True)
class Shared:
    """The addresses of two API servers on one database and one broker, and how their processes are started."""

    first: str
    second: str
    database: Postgres
    environment: Mapping[str, str]
    folder: Path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The API servers, with the variables that the README names; only the places are those of this machine."""
    programs, program = postgres_programs(), redis_program()
    if programs is None:
        missing("PostgreSQL: apt-get install postgresql")
    if program is None:
        missing("Redis: apt-get install redis-server")
    if importlib.util.find_spec("prefect_redis") is None:
        missing("prefect-redis: pip install 'combee-pipeline[redis]'")
    folder = tmp_path_factory.mktemp("servers")
    with postgres(programs) as database, redis(program, folder) as broker:
        environment = _environment(folder, database, broker)
        _prefect(environment, "server", "database", "upgrade", "-y")
        with ExitStack() as stack:
            first, second = (_api(stack, environment, folder) for _ in range(2))
            yield Shared(first, second, database, environment, folder)


@pytest.fixture(scope="module")
def shared(servers: Shared) -> Iterator[Shared]:
    """The same, with the background services once automations fire."""
    with _going(servers.environment, servers.folder, "server", "services", "start"):
        try:
            firing(PrefectApi(servers.second, {}), 240)
        except CombeeError as error:
            raise AssertionError(_logs(servers.folder)) from error
        yield servers


def _environment(folder: Path, database: Postgres, broker: int) -> dict[str, str]:
    said = readme()
    assert said.keys() >= _PLACES, said
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COMBEE_"))}
    here = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database.url(),
        "PREFECT_REDIS_MESSAGING_HOST": "127.0.0.1",
        "PREFECT_REDIS_MESSAGING_PORT": str(broker),
        "PREFECT_SERVER_DOCKET_URL": f"redis://127.0.0.1:{broker}/1",
        "PREFECT_HOME": str(folder / "home"),
    }
    return {**kept, **said, **here, "DO_NOT_TRACK": "1", "PREFECT_LOGGING_SERVER_LEVEL": "DEBUG"}


def _prefect(environment: Mapping[str, str], *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "prefect", *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _api(stack: ExitStack, environment: Mapping[str, str], folder: Path) -> str:
    """The address of a server more, once it answers: two that begin at once on a new database disturb each other."""
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--no-services")
    child = stack.enter_context(_going(environment, folder, "server", "start", *where))
    api = f"http://127.0.0.1:{port}/api"
    assert until(lambda: _healthy(api) or child.poll() is not None), _logs(folder)
    assert child.poll() is None, _logs(folder)
    return api


@contextmanager
def _going(environment: Mapping[str, str], folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    log = folder / f"{len(list(folder.glob('*.log')))}.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "prefect", *words]
        child = subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(60)


def _healthy(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _logs(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(folder.glob("*.log")))


def _day(folder: Path) -> Path:
    path = folder / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, 0, date(2026, 3, 2)))
    return path


def test_servers_whose_automations_do_not_fire_are_named(servers: Shared) -> None:
    """First of all, while no services run."""
    api = PrefectApi(servers.first, {})
    with pytest.raises(CombeeError, match="neither recorded nor acted upon"):
        firing(api, 3)
    deaf = {**servers.environment, "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false"}
    with (
        _going(deaf, servers.folder, "server", "services", "start"),
        pytest.raises(CombeeError, match="reactive-triggers does not run"),
    ):
        firing(api, 40)


def test_a_night_through_one_server_is_seen_through_the_other_and_its_tasks_are_recorded(
    shared: Shared, tmp_path: Path
) -> None:
    combee = Combee(tmp_path / "home", {"PREFECT_API_URL": shared.first})
    done = combee("nightly", "--traces", _day(tmp_path), *DAY, "--store", f"file://{tmp_path}/store", "--json")
    assert done.code == 0, done.err[-3000:]
    assert done.json["accounting"]["learned"] == TRACES

    (night,) = PrefectApi(shared.second, {}).find(
        "flow_runs", {"flow_runs": {"id": {"any_": [done.json["flow_run_id"]]}}}
    )
    assert night["state"]["name"] == "Completed"
    counted = "SELECT count(*) FROM task_run WHERE state_type = 'COMPLETED' AND name LIKE 'reflect%'"
    assert until(lambda: int(shared.database.psql(counted, database="prefect")) >= TRACES), "events went through Redis"


def test_an_alarm_raised_through_one_server_fires_an_automation_that_was_made_on_the_other(
    shared: Shared, tmp_path: Path
) -> None:
    with hook() as (url, got):
        setup = Combee(tmp_path / "home", {"PREFECT_API_URL": shared.second})
        assert setup("alarms", "setup", "--url", url).code == 0
        combee = Combee(tmp_path / "home", {"PREFECT_API_URL": shared.first})
        nothing = ("--traces", _day(tmp_path), "--day", "2026-03-03", "--store", f"file://{tmp_path}/store")
        assert combee("nightly", "--playbook", "empty", *nothing).code == 0
        assert until(lambda: got), "the alarm's automation has called"
    assert [one["kind"] for one in got] == ["no-traces"]


def test_a_killed_night_falls_silent_and_is_marked_crashed(shared: Shared, tmp_path: Path) -> None:
    beats = {"PREFECT_API_URL": shared.first, "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
    combee = Combee(tmp_path / "home", beats)
    assert combee("alarms", "setup", "--silence", 90).code == 0
    named = {"flow_runs": {"name": {"like_": "nightly-silent"}}}
    with simulated_server(tmp_path, latency=600) as server:
        model = ("--model", "openai/simulated/overload", "--api-base", server.url)
        source = ("--traces", _day(tmp_path), *DAY, "--store", f"file://{tmp_path}/store")
        process = combee.start("nightly", "--playbook", "silent", *source, *model)
        assert until(lambda: server.stats()["running"]), "the night has not begun to ask"
        kill(process)
    api = PrefectApi(shared.second, {})
    assert until(lambda: [run for run in api.find("flow_runs", named) if run["state"]["name"] == "Crashed"])
