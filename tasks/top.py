"""The flow run that a person sees on top, whichever flow asks."""

from __future__ import annotations

from prefect.runtime import flow_run


def top_id() -> str:
    """Its id."""
    return str(flow_run.root_flow_run_id or flow_run.id)


def is_top() -> bool:
    """True for the flow run on top itself."""
    return flow_run.parent_flow_run_id is None
