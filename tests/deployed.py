"""The nightly flow as a deployment, with process workers and served: real processes that can be killed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from disturbed import FOR_EVER, configuration, family, kill_all, running, until
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Cancelling, Scheduled

from combee_core.config import RunRequest
from tasks import crashed

ROOT = Path(__file__).parents[1]
ONE = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)


@dataclass
class Deployed:
    """Names are fresh, so that nothing else on the server matters. Logs of processes lie in `folder`."""

    api: str
    folder: Path
    label: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def on(cls, api: str, folder: Path) -> Iterator[Deployed]:
        """On this server; its processes are killed on leaving."""
        made = cls(api, folder)
        try:
            yield made
        finally:
            for process in made.processes:
                made.kill(process)

    @property
    def name(self) -> str:
        """Of the deployment, as `combee serve --name` makes it of the label."""
        return f"nightly-{self.label}"

    @property
    def file(self) -> Path:
        """The configuration that is served."""
        return self.folder / "night.toml"

    def deploy(self, request: RunRequest) -> None:
        """A deployment in a work pool of its own, one run at a time, with this request."""
        from flows.nightly import nightly

        with get_client(sync_client=True) as client:
            client.create_work_pool(WorkPoolCreate(name=self.name, type="process"))
        with redirect_stdout(io.StringIO()):  # a table that nobody asked for
            nightly.from_source(str(ROOT), "flows/nightly.py:nightly").deploy(
                self.name,
                work_pool_name=self.name,
                parameters={"request": request.model_dump(mode="json", exclude_none=True)},
                concurrency_limit=ONE,
                print_next_steps=False,
                ignore_warnings=True,
            )

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker of the pool, ready for work; it runs one flow at a time."""
        how = ("--pool", self.name, "--type", "process", "--limit", "1")
        return self._started(["-m", "prefect", "--no-prompt", "worker", "start", *how], "started!")

    def serve(self, request: RunRequest) -> subprocess.Popen[bytes]:
        """`combee serve` with this request in its configuration, ready for work."""
        self.file.write_text(configuration(request))
        how = ("--config", str(self.file), "--name", self.label, "--json")
        return self._started(["-m", "combee_core.cli", "serve", *how], '{"deployments": ')

    def order(self, request: RunRequest | None = None, due: datetime | None = None) -> UUID:
        """A flow run of the deployment, due now or at that time, which may be long over."""
        parameters = {"request": request.model_dump(mode="json", exclude_none=True)} if request else None
        state = Scheduled(scheduled_time=due) if due else None
        with get_client(sync_client=True) as client:
            found = client.read_deployment_by_name(f"nightly/{self.name}")
            return client.create_flow_run_from_deployment(found.id, parameters=parameters, state=state).id

    def logs(self) -> str:
        """What its processes have said last."""
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.folder.glob("*.log")))

    @staticmethod
    def kill(process: subprocess.Popen[bytes], *, alone: bool = False) -> None:
        """kill -9, of the process and all that it has started unless `alone`."""
        kill_all([process.pid] if alone else family(process.pid))
        process.wait(FOR_EVER)

    def _started(self, command: list[str], word: str) -> subprocess.Popen[bytes]:
        path = self._log(len(self.processes))
        with path.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, env=self._environ, stdout=out, stderr=out, start_new_session=True
            )
        self.processes.append(process)
        until(lambda: word in path.read_text(), lambda: running(process, path))
        return process

    def _log(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    @property
    def _environ(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COMBEE_"))}
        own = {"PREFECT_API_URL": self.api, "PREFECT_HOME": str(self.folder / "home"), "PYTHONPATH": str(ROOT)}
        own |= {"COMBEE_HOME": str(self.folder / "home")}
        often = {"PREFECT_WORKER_QUERY_SECONDS": "1", "PREFECT_RUNNER_POLL_FREQUENCY": "1", "COLUMNS": "500"}
        return {**kept, **own, **often, "OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1"}


def state_of(flow_run_id: UUID | str, client: SyncPrefectClient | None = None) -> State:
    """The flow run's state, as the server has it."""
    with nullcontext(client) if client else get_client(sync_client=True) as asked:
        state = asked.read_flow_run(UUID(str(flow_run_id))).state
    assert state is not None
    return state


def unless_failed(flow_run_id: UUID | str) -> None:
    """Raise `AssertionError` with the reason if it has failed."""
    state = state_of(flow_run_id)
    assert not state.is_failed(), state


def ended(flow_run_id: UUID | str) -> str:
    """The name of its final state, once it has one."""
    with get_client(sync_client=True) as client:
        until(lambda: state_of(flow_run_id, client).is_final(), pause=1)
        return state_of(flow_run_id, client).name or ""


def cancel(flow_run_id: UUID | str) -> None:
    """What the page's Cancel does."""
    with get_client(sync_client=True) as client:
        answer = client.set_flow_run_state(UUID(str(flow_run_id)), Cancelling())
    assert answer.status == SetStateStatus.ACCEPT, answer


def retry(flow_run_id: UUID | str) -> None:
    """What the page's Retry does with a run, after its dead process was noticed."""
    with get_client(sync_client=True) as client:
        crashed.mark(client, str(flow_run_id))
        answer = client.set_flow_run_state(UUID(str(flow_run_id)), Scheduled(name="AwaitingRetry"))
    assert answer.status == SetStateStatus.ACCEPT, answer
