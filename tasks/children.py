"""Flows as parts of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from prefect import Flow
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from combee_core.config import RunSettings
from tasks.runners import runner_for

P = ParamSpec("P")
R = TypeVar("R")


def child(flow: Flow[P, R], settings: RunSettings | None = None) -> Callable[P, R]:
    """`flow` as a part of a run; with `settings` its tasks go where the run's tasks go."""
    placed = flow.with_options(task_runner=runner_for(settings)) if settings else flow

    @wraps(flow.fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # Joining a child's heartbeat thread costs a second; the top run keeps its own.
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            return placed(*args, **kwargs)

    return call
