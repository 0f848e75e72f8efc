"""The flow run that a person sees on top, whichever flow asks."""

from __future__ import annotations

from functools import lru_cache

from prefect.runtime import flow_run


def top_id() -> str:
    """Its id."""
    return _top_of(flow_run.id)


def is_top() -> bool:
    """True for the flow run on top itself."""
    return top_id() == str(flow_run.id)


@lru_cache(maxsize=64)
def _top_of(flow_run_id: str) -> str:
    # Asked of the server, level by level, and often; what a run is part of does not change.
    return str(flow_run.root_flow_run_id or flow_run_id)
