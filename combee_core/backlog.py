"""Traces that were not learned from, filed in the store with the reason, so that a later night can pick them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from combee_core.base import Noun, content_hash
from combee_core.ports import Store
from combee_core.records import Plan, TraceFate
from combee_core.saving import read_record, write_record

FILED = ("refused", "failed", "deferred")


class Entry(Noun):
    """One filed trace: its id and content hash, what became of it, and in which run."""

    trace_id: str
    digest: str
    fate: str
    reason: str
    run: str


def file(store: Store, plan: Plan, fates: Iterable[TraceFate]) -> None:
    """Write an entry for each trace that was refused, failed or deferred; take out those that the run has settled.

    Entries are found by content: another night's trace of the same id is another trace.
    """
    folder = _folder(plan.request.playbook)
    digests = {item.id: item.digest for item in plan.items}
    there = set(store.list(folder))
    for fate in fates:
        if fate.trace_id not in digests:
            continue
        entry = Entry(**fate.model_dump(), digest=digests[fate.trace_id], run=plan.key)
        key = f"{folder}{content_hash(entry.trace_id, entry.digest)[:24]}.json"
        if fate.fate in FILED:
            _put(store, key, write_record(entry))
        elif key in there:
            store.delete(key)


def entries(store: Store, playbook: str) -> Iterator[Entry]:
    """Everything that is filed for a playbook; what cannot be read is left out."""
    for key in store.list(_folder(playbook)):
        blob = store.read(key)
        entry = read_record(Entry, blob.data) if blob else None
        if entry:
            yield entry


def _put(store: Store, key: str, data: bytes) -> None:
    while not store.create(key, data):
        blob = store.read(key)
        if blob and store.replace(key, data, blob.tag):
            return


def _folder(playbook: str) -> str:
    return f"backlog/{playbook}/"
