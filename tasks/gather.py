"""Futures split by state. Waiting on all of them first: a failed input must never become None in a later step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from prefect.futures import PrefectFuture, wait

from combee_core.adapters.workshop import stop_calls
from combee_core.conclude import check_failures
from combee_core.errors import CombeeError, ModelUnusable, RunError, RunStopped
from combee_core.types import Reflected, Trajectory

R = TypeVar("R")


def settled(
    trajectories: Sequence[Trajectory], futures: Sequence[PrefectFuture[Reflected]], most_failed: float
) -> list[Reflected]:
    """One result for each trajectory; a task that failed for good becomes a failed result.

    Raises `RunError` when more than the share `most_failed` failed, and what is not an error of ours as it is.
    """
    _ended(futures)
    reflected = [
        _value(future)
        if future.state.is_completed()
        else Reflected(trace_id=trajectory.trace_id, fate="failed", reason=_reason(future))
        for trajectory, future in zip(trajectories, futures, strict=True)
    ]
    check_failures(reflected, most_failed)
    return reflected


def collected(stage: str, names: Sequence[str], futures: Sequence[PrefectFuture[R]]) -> list[R]:
    """All results. Raises `RunError` naming every item that failed, after all have ended."""
    _ended(futures)
    failed = [
        (name, _reason(future)) for name, future in zip(names, futures, strict=True) if not future.state.is_completed()
    ]
    if failed:
        message = "; ".join(f"{name} failed: {reason}" for name, reason in failed)
        raise RunError(message, stage, failed[0][0])
    return [_value(future) for future in futures]


def _ended(futures: Sequence[PrefectFuture[Any]]) -> None:
    """Wait for all. Whoever interrupts the wait wants no new call: tasks that have not asked yet must not."""
    try:
        wait(list(futures))
    except BaseException:
        stop_calls("the run was interrupted; the same command goes on from what is saved")
        raise


def _value(future: PrefectFuture[R]) -> R:
    return future.result()


def _reason(future: PrefectFuture[Any]) -> str:
    """The cause in one line. Raises a cause that stops the whole run, such as a wrong key, as it is."""
    error = future.state.result(raise_on_failure=False)
    if isinstance(error, CombeeError) and not isinstance(error, ModelUnusable | RunStopped):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, BaseException):
        raise error
    return future.state.message or f"ended {future.state.name}"
