"""Whether Prefect and the store tell the same: what a flow run that is Completed says became of its traces."""

from __future__ import annotations

import json
from collections.abc import Iterator

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    ArtifactFilterKey,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
)
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import ArtifactSort, FlowRunSort

from combee_core import summary
from combee_core.ports import Store
from combee_core.runs import Run

LATEST = 200
"""Flow runs that are looked at: far more than one test starts."""


def completed(store: Store) -> list[FlowRun]:
    """The nights on this store that the server calls Completed."""
    with get_client(sync_client=True) as client:
        named = FlowFilter(name=FlowFilterName(any_=["nightly"]))
        found = client.read_flow_runs(flow_filter=named, limit=LATEST, sort=FlowRunSort.EXPECTED_START_TIME_DESC)
    ours = (run for run in found if run.parameters["request"]["store"] == store.uri)
    return [run for run in ours if run.state is not None and run.state.is_completed()]


def unaccounted(store: Store) -> list[str]:
    """Those of them that show no accounting, or one that no result in the store has."""
    runs = [Run(store, key.split("/")[1]) for key in store.list("runs/") if key.endswith("/plan.json")]
    recorded = [summary.accounting(result) for run in runs if (result := run.result())]
    with get_client(sync_client=True) as client:
        return [str(run.id) for run in completed(store) if _accounting(client, run) not in recorded]


def _accounting(client: SyncPrefectClient, top: FlowRun) -> object:
    """The last table that a flow run or one below it shows; None where there is none."""
    ids = ArtifactFilterFlowRunId(any_=[run.id for run in _family(client, top)])
    wanted = ArtifactFilter(flow_run_id=ids, key=ArtifactFilterKey(any_=["accounting"]))
    shown = client.read_artifacts(artifact_filter=wanted, sort=ArtifactSort.CREATED_DESC, limit=1, offset=0)
    return json.loads(str(shown[0].data)) if shown else None


def _family(client: SyncPrefectClient, top: FlowRun) -> Iterator[FlowRun]:
    generation = [top]
    while generation:
        yield from generation
        parents = FlowRunFilterParentFlowRunId(any_=[run.id for run in generation])
        generation = client.read_flow_runs(flow_run_filter=FlowRunFilter(parent_flow_run_id=parents), limit=LATEST)
