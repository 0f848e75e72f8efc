"""Shards' futures as items' results. Waiting on all first: a failed input must never become None in a later step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.futures import PrefectFuture, wait

from combee_core.adapters.workshop import wind_down
from combee_core.causes import by_cause
from combee_core.conclude import check_failures
from combee_core.errors import CombeeError, RunError
from combee_core.shards import Shard, Unsettled, reason, stops
from combee_core.types import Reflected, Trajectory

_ON_DASK = "on Dask, scheduler and workers need this checkout in their PYTHONPATH, and the same packages"


def gathered(shards: Sequence[Shard[Any]], futures: Sequence[PrefectFuture[Any]]) -> list[Any]:
    """A result or an `Unsettled` for each item of each shard, in order, after all have ended.

    Raises what stops the whole run, such as a wrong key, what is not an error of ours, and `RunError` for a task that
    was lost with the process that ran it.
    """
    _ended(futures)
    return [one for shard, future in zip(shards, futures, strict=True) for one in _results(shard, future)]


def settled(
    trajectories: Sequence[Trajectory], done: Sequence[Any], most_failed: float, of: int = 0
) -> list[Reflected]:
    """One result for each trajectory; one that could not be reflected on becomes a failed result.

    Raises `RunError` when more than the share `most_failed` failed (of `of` reflections, where that is more).
    """
    reflected = [
        Reflected(trace_id=trajectory.trace_id, fate="failed", reason=one.reason) if isinstance(one, Unsettled) else one
        for trajectory, one in zip(trajectories, done, strict=True)
    ]
    check_failures(reflected, most_failed, of)
    return reflected


def collected(stage: str, names: Sequence[str], done: Sequence[Any]) -> list[Any]:
    """All results. Raises `RunError` that names what failed, the first twenty of each reason."""
    failed = [(name, one.reason) for name, one in zip(names, done, strict=True) if isinstance(one, Unsettled)]
    if failed:
        raise RunError("; ".join(by_cause(failed)), stage, failed[0][0])
    return list(done)


def outcome(value: Any) -> Any:
    """What a task ended with: its value, or an `Unsettled` for an error that does not stop the whole run."""
    if isinstance(value, CombeeError) and not stops(value):
        return Unsettled(reason=reason(value))
    if isinstance(value, BaseException):
        raise value
    return value


def _ended(futures: Sequence[PrefectFuture[Any]]) -> None:
    """Wait for all. Whoever interrupts the wait wants no new call: tasks that have not asked yet must not."""
    try:
        wait(list(futures))
    except BaseException:
        wind_down("the run was interrupted; the same command goes on from what is saved")
        raise


def _results(shard: Shard[Any], future: PrefectFuture[Any]) -> Sequence[Any]:
    try:
        value = future.result(raise_on_failure=False)
    except Exception as lost:
        # Whatever a runner raises where a task left no state: Dask names its lost worker in an error of its own.
        why = " ".join(f"{type(lost).__name__}: {lost}".split())
        raise RunError(f"{shard.name} was lost: {why}; {_ON_DASK}", item=shard.name) from lost
    ended = outcome(value)
    return [ended] * len(shard.items) if isinstance(ended, Unsettled) else ended
