"""Flow runs whose process died are marked Crashed; the server alone would show them as Running for ever."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType, TaskRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from combee_core.adapters.workshop import Workshop

_PAGE = 200
_MESSAGE = "The process of this run ended without a word; its work is gone on with."


def mark_others(shop: Workshop, me: str) -> None:
    """Mark earlier flow runs of this run, other than `me`. Call it only while holding the run: then they are dead."""
    prefix = shop.run.path("flow-runs/")
    others = [key.removeprefix(prefix) for key in shop.store.list(prefix)]
    if all(other == me for other in others):
        return
    with get_client(sync_client=True) as client:
        for other in others:
            if other != me:
                mark(client, other)


def mark(
    client: SyncPrefectClient,
    flow_run_id: str,
    state: State[Any] | None = None,
    besides: Collection[StateType] = TERMINAL_STATES,
) -> None:
    """Give a flow run, its descendants and their unended task runs `state`, Crashed without one, but for flow runs in a
    state of `besides`: by default all that have ended. A flow run that the server has forgotten is fine.
    """
    try:
        top = client.read_flow_run(UUID(flow_run_id))
    except ObjectNotFound:
        return
    new = state or Crashed(message=_MESSAGE)
    for run in [*_descendants(client, top), top]:
        if run.state is None or run.state.type not in besides:
            client.set_flow_run_state(run.id, new, force=True)
            for task_run in _unended(client, run):
                client.set_task_run_state(task_run.id, new, force=True)


def _unended(client: SyncPrefectClient, run: FlowRun) -> Sequence[TaskRun]:
    """The task runs that the server shows as not ended. It may be late; they are only given another colour."""
    of_this = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    alive = [kind for kind in StateType if kind not in TERMINAL_STATES]
    states = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=alive)))
    return client.read_task_runs(flow_run_filter=of_this, task_run_filter=states, limit=_PAGE)


def _descendants(client: SyncPrefectClient, run: FlowRun) -> Iterator[FlowRun]:
    of_this = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
    for offset in count(0, _PAGE):
        page = client.read_flow_runs(flow_run_filter=of_this, limit=_PAGE, offset=offset)
        for child in page:
            yield from _descendants(client, child)
            yield child
        if len(page) < _PAGE:
            return
