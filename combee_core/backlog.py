"""Traces that were not learned from, filed in the store with the reason, so that a later night can pick them up.

backlog/<playbook>/00.json … ff.json: each holds the entries whose hash begins like its name. A night of a hundred
thousand failures writes 256 objects, and where nothing was ever filed none is read or written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from pydantic import Field

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


class Shelf(Noun):
    """The entries of one object, by the hash of id and content."""

    entries: dict[str, Entry] = Field(default_factory=dict)


def file(store: Store, plan: Plan, fates: Iterable[TraceFate]) -> None:
    """Write an entry for each trace of the plan that was refused, failed or deferred; all others the run has settled,
    and what is filed of them is taken out.

    Entries are found by content: another night's trace of the same id is another trace.
    """
    folder = _folder(plan.request.playbook)
    there = set(store.list(folder))
    changes: dict[str, dict[str, Entry | None]] = defaultdict(dict)
    for name, entry in _found(plan, fates):
        key = f"{folder}{name[:2]}.json"
        if entry or key in there:
            changes[key][name] = entry
    for key, changed in changes.items():
        _change(store, key, changed)


def _found(plan: Plan, fates: Iterable[TraceFate]) -> Iterator[tuple[str, Entry | None]]:
    """The hash of each trace of the plan, and its entry; None for one that is settled."""
    filed = {fate.trace_id: fate for fate in fates if fate.fate in FILED}
    for item in plan.items:
        fate = filed.get(item.id)
        entry = Entry(**asdict(fate), digest=item.digest, run=plan.key) if fate else None
        yield content_hash(item.id, item.digest), entry


def entries(store: Store, playbook: str) -> Iterator[Entry]:
    """Everything that is filed for a playbook; what cannot be read is left out."""
    for key in store.list(_folder(playbook)):
        blob = store.read(key)
        shelf = read_record(Shelf, blob.data) if blob else None
        yield from shelf.entries.values() if shelf else ()


def _change(store: Store, key: str, changes: Mapping[str, Entry | None]) -> None:
    """Put in what is an entry, take out what is None; what others change meanwhile stays changed."""
    while True:
        blob = store.read(key)
        shelf = (read_record(Shelf, blob.data) if blob else None) or Shelf()
        after = Shelf(entries={name: entry for name, entry in {**shelf.entries, **changes}.items() if entry})
        if after == shelf or store.replace(key, write_record(after), blob.tag if blob else None):
            return


def _folder(playbook: str) -> str:
    return f"backlog/{playbook}/"
