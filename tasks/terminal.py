"""What a flow run from a terminal needs besides: its place on the server, its outcome as a value, a quiet log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.objects import State as PrefectState
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Pending
from pydantic import ValidationError

from combee_core import history
from combee_core.adapters.lease import held_by
from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, open_workshop
from combee_core.config import RunRequest, RunSettings
from combee_core.errors import CombeeError, RunStopped, UsageError
from combee_core.history import last_attempt
from combee_core.nights import noted_days
from combee_core.outcome import NothingLearned, never_begun
from combee_core.records import Failure, RunResult
from combee_core.runs import Run, part_of, run_of, runs_of
from tasks import crashed
from tasks.entry import failed_result
from tasks.watch import leave

_REPEATED = (("prefect.task_runs", f"{RunStopped.__name__}:"), ("prefect._internal.concurrency", "EventsWorker"))
"""Said hundreds of times over: of each item that had not asked when a run was stopped, of each event while the server
is away."""

Outcome = tuple[RunResult, BaseException | None]
Change = Callable[[RunSettings], RunSettings]


def top_run(client: SyncPrefectClient, flow_run_id: str) -> FlowRun:
    """The flow run itself, or the one on top that it is part of. Raises `UsageError` where the server knows none."""
    try:
        run = client.read_flow_run(UUID(flow_run_id))
        while run.parent_task_run_id:
            parent = client.read_task_run(run.parent_task_run_id).flow_run_id
            if parent is None:
                break
            run = client.read_flow_run(parent)
    except (ObjectNotFound, ValueError) as error:
        raise UsageError(f"the Prefect server knows no flow run {flow_run_id}; copy the id from its page") from error
    return run


def unchanged(settings: RunSettings) -> RunSettings:
    """The settings as they are."""
    return settings


def asked_again(planned: Run, change: Change) -> RunRequest:
    """What a run was planned for, with the settings of its last attempt as `change` makes them."""
    return planned.plan().request.model_copy(update={"settings": change(planned.settings())})


def ready_again(client: SyncPrefectClient, run: FlowRun, change: Change = unchanged) -> FlowRun:
    """The same flow run, scheduled anew; what was left of it as Running is marked Crashed.

    What `change` makes of its settings is recorded, so that every later attempt has it too. Raises `RunHeld` while a
    live process works on one of its runs.
    """
    for planned in runs_of_flow(run):
        holder = planned.store.holder(planned.path("owner"))
        if holder is not None:
            raise held_by(holder, planned.store.uri, planned.path("owner"))
    crashed.mark(client, str(run.id))
    request = request_in(run.parameters)
    changed = request.model_copy(update={"settings": change(request.settings)})
    if changed != request:
        data = changed.model_dump(mode="json", exclude_none=True)
        client.update_flow_run(run.id, parameters={**run.parameters, "request": data})
    # Not Scheduled: a deployment's run would be picked up by its worker too.
    client.set_flow_run_state(run.id, Pending(message="combee rerun"), force=True)
    return client.read_flow_run(run.id)


def runs_of_flow(run: FlowRun) -> list[Run]:
    """The runs in the store that a flow run has worked on."""
    return runs_of(open_store(request_in(run.parameters).store), str(run.id))


def request_in(parameters: Mapping[str, Any]) -> RunRequest:
    """The request among a top flow's parameters. Raises `UsageError` where there is none."""
    try:
        return RunRequest.model_validate(parameters.get("request"))
    except ValidationError as error:
        raise UsageError(f"this flow run has no request that can be read: {error.errors()[0]['msg']}") from error


def new_flow_run(
    client: SyncPrefectClient, flow: Flow[Any, Any], parameters: dict[str, Any], planned: Run | None = None
) -> FlowRun:
    """A flow run that is about to start here, for `planned` where it goes on with a run of an earlier one."""
    made = client.create_flow_run(flow, parameters=flow.serialize_parameters(parameters), state=Pending())
    if planned is not None:
        planned.note_flow_run(str(made.id), part_of(planned.plan().request.source))
    return made


def lost(flow_run_id: UUID, request: RunRequest, message: str) -> None:
    """Record that the server was lost, and end the process: what it did is saved, and nothing else can be done here."""
    full = f"{message}; nothing was published, what is saved stays saved: start it, then combee rerun {flow_run_id}"
    with suppress(CombeeError):
        for run in runs_of(open_store(request.store), str(flow_run_id)):
            attempt = last_attempt(run)
            if attempt and attempt.ended is None:
                failure = Failure(stage="server", item="Prefect", message=full)
                history.end(run, attempt, "failed", datetime.now(UTC), failure)
    leave(full)


def _cancelled(flow_run_id: UUID, request: RunRequest) -> Outcome:
    """The outcome of a flow run that stopped because it was cancelled; it, and what of it had not ended well, is marked
    Cancelled.
    """
    message = f"cancelled; what is saved stays saved, go on with: combee rerun {flow_run_id}"
    with get_client(sync_client=True) as client:
        crashed.mark(client, str(flow_run_id), Cancelled(message=message), besides={StateType.COMPLETED})
    error = RunStopped(message)
    return _failure(request, str(flow_run_id), error), error


def outcome(ended: object, request: RunRequest, cancelled: UUID | None = None) -> Outcome:
    """A flow's final state as its result, and the error if it failed; `cancelled` is its id where it was cancelled."""
    state = cast(PrefectState[Any], ended)
    if cancelled and not state.is_completed():
        return _cancelled(cancelled, request)
    value = state.result(raise_on_failure=False)
    if isinstance(value, RunResult):
        return value, None
    if isinstance(value, NothingLearned):
        return value.result, value
    error = value if isinstance(value, BaseException) else RuntimeError(state.message or state.name)
    flow_run_id = str(state.state_details.flow_run_id or "")
    return _failure(request, flow_run_id, error), error


def _failure(request: RunRequest, flow_run_id: str, error: BaseException) -> RunResult:
    try:
        store = open_store(request.store)
        run = run_of(store, flow_run_id) if flow_run_id else None
        begun = run is not None and run.result() is None
        known = failed_result(open_workshop(Place(store=store.uri, run=run.key)), error) if run and begun else None
        days = noted_days(store, flow_run_id)
    except CombeeError:
        # The store itself may be what failed; the error that is reported says so.
        known, days = None, ()
    result = known or never_begun(request, error)
    return result.model_copy(update={"flow_run_id": flow_run_id, "days": days})


def spare_the_terminal() -> None:
    """Keep off the terminal what the UI shows better: a line for each task, and stacks of errors raised on purpose."""
    # Prefect's own services write past the root.
    for name in ("", "prefect._internal"):
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_News())


class _News(logging.Filter):
    """Lets through what is new: what stops a run ends each of its tasks with the same words."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """True for what is to be shown."""
        if not _is_news(record):
            return False
        text = record.getMessage()
        is_told = record.name == "prefect.task_runs" and text in self._told
        self._told.add(text)
        return not is_told


def _is_news(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    expected = kind is not None and issubclass(kind, CombeeError)
    expected = expected or any(record.name == name and word in record.getMessage() for name, word in _REPEATED)
    return not expected and (record.levelno > logging.INFO or record.name != "prefect.task_runs")
