"""Task runs of a flow run and of all below it, as the Prefect server has written them down: growth.py counts them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from command import Combee

LAG = 300.0
"""Seconds that the server gets to write down the last task runs: it does so behind the flow."""


def task_runs(combee: Combee, flow_run_id: str, ended: int) -> dict[str, int]:
    """Task runs by flow run, once the server knows of as many as have `ended`, or knows no more of them."""
    until, counts = time.monotonic() + LAG, dict[str, int]()
    while time.monotonic() < until:
        counts = {run: _tasks_of(combee, run) for run in _family(combee, flow_run_id)}
        if ended_in(counts) >= ended:
            break
        time.sleep(2)
    return counts


def ended_in(counts: Mapping[str, int]) -> int:
    """Task runs that end in a log line: all but those that only stand for a flow run below another one."""
    return sum(counts.values()) - (len(counts) - 1)


def _family(combee: Combee, flow_run_id: str) -> list[str]:
    """The flow run and all below it."""
    family, new = [flow_run_id], [flow_run_id]
    while new:
        new = [run["id"] for parent in new for run in _children_of(combee, parent)]
        family += new
    return family


def _children_of(combee: Combee, flow_run_id: str) -> Iterator[dict[str, Any]]:
    where = {"flow_runs": {"parent_flow_run_id": {"any_": [flow_run_id]}}}
    offset = 0
    while page := _ask(combee, "flow_runs/filter", {**where, "limit": 200, "offset": offset}):
        yield from page
        offset += len(page)


def _tasks_of(combee: Combee, flow_run_id: str) -> int:
    count: int = _ask(combee, "task_runs/count", {"flow_runs": {"id": {"any_": [flow_run_id]}}})
    return count


def _ask(combee: Combee, path: str, query: Any) -> Any:
    port = json.loads((combee.home / "server.json").read_text())["port"]
    address, body = f"http://127.0.0.1:{port}/api/{path}", json.dumps(query).encode()
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
