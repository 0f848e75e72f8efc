"""Flows as parts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.setting import setting


@contextmanager
def without_heartbeats() -> Iterator[None]:
    """Flows that are called inside send no heartbeat: joining its thread costs a second. The top run keeps its own."""
    with setting("flows", "heartbeat_frequency", None):
        yield
