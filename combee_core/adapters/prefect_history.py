"""What a Prefect server remembers of a store's runs: found by the store that their parameters name, deleted by age."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from combee_core.adapters.prefect_api import PrefectApi

_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
_BULK = 50
"""Flow runs that the server deletes at once."""


def prune_history(api: PrefectApi, store: str, before: datetime, *, dry_run: bool = False) -> dict[str, int]:
    """Delete, or only count, the ended flow runs of `store` from before `before`, with all that belongs to them.

    `store` is a store's URI. Runs of other stores, and those that have not ended, stay. Raises `CombeeError`.
    """
    doomed = [run["id"] for run in _ended(api, before) if store in _stores(run.get("parameters") or {})]
    counts = {"flow runs": len(doomed), "artifacts": 0}
    for part in _parts(doomed):
        artifacts = {"artifacts": {"flow_run_id": {"any_": part}}}
        ids = [artifact["id"] for artifact in api.find("artifacts", artifacts)]
        counts["artifacts"] += len(ids)
        if dry_run:
            continue
        # The server keeps artifacts of runs that are gone, so they go first.
        for artifact in ids:
            api.call("DELETE", f"/artifacts/{artifact}")
        api.call("POST", "/flow_runs/bulk_delete", {"flow_runs": {"id": {"any_": part}}, "limit": _BULK})
    return counts


def running(api: PrefectApi, store: str) -> Iterator[str]:
    """The ids of the flow runs of `store` that the server shows as running and that are no part of another."""
    wanted = {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}
    for run in api.find("flow_runs", {"flow_runs": wanted, "sort": "START_TIME_ASC"}):
        if run.get("parent_task_run_id") is None and store in _stores(run.get("parameters") or {}):
            yield run["id"]


def _ended(api: PrefectApi, before: datetime) -> Iterator[dict[str, Any]]:
    wanted = {"state": {"type": {"any_": _ENDED}}, "end_time": {"before_": before.isoformat()}}
    return api.find("flow_runs", {"flow_runs": wanted, "sort": "END_TIME_DESC"})


def _stores(parameters: Mapping[str, Any]) -> Iterable[object]:
    """Every flow of ours takes a noun that says which store it works on."""
    return [parameters.get("store"), *(value.get("store") for value in parameters.values() if isinstance(value, dict))]


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _BULK] for start in range(0, len(ids), _BULK))
