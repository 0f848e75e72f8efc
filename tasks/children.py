"""Flows as parts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings


@contextmanager
def without_heartbeats() -> Iterator[None]:
    """Flows that are called inside send no heartbeat: joining its thread costs a second. The top run keeps its own."""
    if PREFECT_FLOWS_HEARTBEAT_FREQUENCY.value() is None:
        # Other settings are a new copy of all of them, which Prefect reads from everywhere again.
        yield
        return
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield
