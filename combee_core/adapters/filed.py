"""What a playbook's backlog holds, as a run's input: each trace is read from the record of the batch that it was in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from combee_core.adapters.stores import open_store
from combee_core.backlog import entries
from combee_core.errors import UsageError
from combee_core.ports import Store
from combee_core.records import Batch, Item
from combee_core.saving import read_record
from combee_core.types import Trajectory


@dataclass(frozen=True)
class Filed:
    """Entries of a backlog: their items, sorted by id, and where the content of each lies."""

    items: tuple[Item, ...] = ()
    _places: Mapping[Item, tuple[Store, str]] = field(default_factory=dict)

    def pick(self, wanted: Iterable[Item]) -> tuple[Trajectory, ...]:
        """The trajectories of a plan's items, in the order asked for.

        Raises `UsageError` naming one that was dropped, or whose record is gone.
        """
        batches: dict[str, dict[str, Trajectory]] = {}
        return tuple(self._one(item, batches) for item in wanted)

    def _one(self, item: Item, batches: dict[str, dict[str, Trajectory]]) -> Trajectory:
        store, place = self._places.get(item, (None, ""))
        if store and place not in batches:
            blob = store.read(place)
            batch = read_record(Batch, blob.data) if blob else None
            batches[place] = {one.trace_id: one for one in batch.trajectories} if batch else {}
        found = batches.get(place, {}).get(item.id)
        if found is None or found.digest != item.digest:
            raise UsageError(f"{item.id} is not in the backlog any more; `combee backlog retry` begins anew")
        return found


def load_filed(uris: Iterable[str]) -> Filed:
    """The entries that the addresses name, each of them `<store>/backlog/<playbook>#<id>,<id>,…`."""
    places: dict[Item, tuple[Store, str]] = {}
    for uri in uris:
        where, _, ids = uri.partition("#")
        at, _, playbook = where.rpartition("/backlog/")
        store, named = open_store(at), set(ids.split(","))
        chosen = (entry for entry in entries(store, playbook) if entry.id in named)
        places |= {Item(id=entry.trace_id, digest=entry.digest): (store, entry.place) for entry in chosen}
    return Filed(tuple(sorted(places, key=lambda item: item.id)), places)
