"""Traces that were not learned from, filed in the store with the reason, so that a later night can pick them up."""

from __future__ import annotations

import json
from collections.abc import Iterable

from combee_core.ports import Store
from combee_core.records import TraceFate
from combee_core.types import sha256

FILED = ("refused", "failed", "deferred")


def file(store: Store, playbook: str, run: str, fates: Iterable[TraceFate]) -> None:
    """Write an entry for each trace that was refused, failed or deferred; take out those that the run has settled."""
    for fate in fates:
        key = f"backlog/{playbook}/{sha256(fate.trace_id)[:24]}.json"
        entry = json.dumps({**fate.model_dump(), "run": run}, ensure_ascii=False).encode()
        blob = store.read(key)
        if fate.fate in FILED:
            store.replace(key, entry, blob.tag if blob else None)
        elif blob:
            store.delete(key)
