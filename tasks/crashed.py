"""Flow runs whose process died are marked Crashed; the server alone would show them as Running for ever."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId
from prefect.client.schemas.objects import FlowRun
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


def mark(client: SyncPrefectClient, flow_run_id: str) -> None:
    """Mark a flow run and its descendants that have not ended. One that the server has forgotten is fine."""
    try:
        top = client.read_flow_run(UUID(flow_run_id))
    except ObjectNotFound:
        return
    for run in [*_descendants(client, top), top]:
        if run.state is None or not run.state.is_final():
            client.set_flow_run_state(run.id, Crashed(message=_MESSAGE), force=True)


def _descendants(client: SyncPrefectClient, run: FlowRun) -> Iterator[FlowRun]:
    of_this = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
    for offset in count(0, _PAGE):
        page = client.read_flow_runs(flow_run_filter=of_this, limit=_PAGE, offset=offset)
        for child in page:
            yield from _descendants(client, child)
            yield child
        if len(page) < _PAGE:
            return
