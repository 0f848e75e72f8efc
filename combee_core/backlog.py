"""Traces that were not learned from, filed in the store with the reason, so that a later night picks them up.

backlog/<playbook>/00.json … ff.json: each holds the entries whose hash begins like its name. A night of a hundred
thousand failures writes 256 objects, and where nothing was ever filed none is read or written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import cache

from pydantic import Field

from combee_core.base import Noun, content_hash
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.ports import Store
from combee_core.records import Item, Plan, TraceFate
from combee_core.runs import Run, batch_name
from combee_core.saving import read_record, write_record

FILED = ("refused", "failed", "deferred")

ID_LENGTH = 12

MOST_AT_ONCE = 1_000
"""How many traces a night tries again: they are named in the run's request."""

_NEVER = 10**9
"""A breaker that no run has calls enough for."""

MOST_TRIES = 3
"""How often nights try a trace again; then it stays for a person."""


class Entry(Noun):
    """One filed trace: its id and content hash, what became of it, and in which run.

    `place` is the object of the store that holds its content, empty where none does; `tries` counts how often it was
    learned again from here, in vain; `day` is the one that it was first learned with.
    """

    trace_id: str
    digest: str
    fate: str
    reason: str
    run: str
    place: str = ""
    tries: int = 0
    day: date | None = None

    @property
    def name(self) -> str:
        """Its hash: another night's trace of the same id is another trace."""
        return content_hash(self.trace_id, self.digest)

    @property
    def id(self) -> str:
        """As people and requests name it."""
        return self.name[:ID_LENGTH]


class Shelf(Noun):
    """The entries of one object, by their names."""

    entries: dict[str, Entry] = Field(default_factory=dict)


def file(store: Store, plan: Plan, fates: Iterable[TraceFate]) -> None:
    """Write an entry for each trace of the plan that was refused, failed or deferred; all others the run has settled,
    and what is filed of them is taken out.

    What a run on the backlog itself did not settle has been tried once more, and stays where its content lies.
    """
    folder = _folder(plan.request.playbook)
    there = set(store.list(folder))
    changes: dict[str, dict[str, Entry | None]] = defaultdict(dict)
    for name, entry in _found(store, plan, fates):
        key = f"{folder}{name[:2]}.json"
        if entry or key in there:
            changes[key][name] = entry
    for key, changed in changes.items():
        _change(store, key, changed)


def is_backlog(request: RunRequest) -> bool:
    """True for a run on what earlier runs have filed."""
    return request.source.kind == "backlog"


def day_of(store: Store, request: RunRequest) -> date | None:
    """The day of what a run learns: its own or, on the backlog, the oldest one of what it tries again."""
    if not is_backlog(request):
        return request.source.day
    tried = {name for uri in request.source.uris for name in uri.partition("#")[2].split(",")}
    days = (entry.day for entry in entries(store, request.playbook) if entry.id in tried)
    return min(filter(None, days), default=None)


def _found(store: Store, plan: Plan, fates: Iterable[TraceFate]) -> Iterator[tuple[str, Entry | None]]:
    """The name of each trace of the plan, and its entry; None for one that is settled or was skipped."""
    tried = 1 if is_backlog(plan.request) else 0
    kinds = (*FILED, "skipped") if tried else FILED
    filed = {fate.trace_id: fate for fate in fates if fate.fate in kinds}
    places = _places(store, plan) if filed else {}
    for item in plan.items:
        fate, place = filed.get(item.id), places.get(item.id, "")
        name, where = content_hash(item.id, item.digest), {"run": plan.key, "place": place}
        day = plan.request.source.day
        yield name, Entry(**asdict(fate), **where, digest=item.digest, tries=tried, day=day) if fate else None


def _places(store: Store, plan: Plan) -> dict[str, str]:
    """Where the content of each trace of the plan lies: in the record of its batch, once that has begun."""
    run = Run(store, plan.key)
    sizing, begun = run.sizing(), set(store.list(run.path("batch-")))
    numbered = ((number, run.path(batch_name(number))) for number in range(1, sizing.count + 1)) if sizing else ()
    return {
        item.id: place
        for number, place in numbered
        if sizing and place in begun
        for item in plan.items[sizing.part(number)]
    }


def entries(store: Store, playbook: str) -> Iterator[Entry]:
    """Everything that is filed for a playbook; what cannot be read is left out."""
    for key in store.list(_folder(playbook)):
        blob = store.read(key)
        shelf = read_record(Shelf, blob.data) if blob else None
        yield from shelf.entries.values() if shelf else ()


def standing(store: Store, filed: Iterable[Entry], most: int = MOST_TRIES) -> Iterator[tuple[Entry, str]]:
    """Each entry, and why it is not due; an empty reason for one that can be tried again, up to `most` times."""

    @cache
    def is_there(key: str) -> bool:
        return bool(store.list(key))

    for entry in filed:
        run = f"runs/{entry.run}/"
        # A run whose records are gone is over, and what it did not keep it will not keep any more.
        over = is_there(f"{run}result.json") or not is_there(f"{run}plan.json")
        if not is_there(entry.place) if entry.place else over:
            yield entry, "its content is not in the store: learn it from its source again"
        elif not over:
            yield entry, f"its run is not finished: combee rerun {entry.run}"
        elif entry.tries >= most:
            yield entry, f"tried {entry.tries} times: combee backlog retry, or drop"
        else:
            yield entry, ""


def runs_named(store: Store) -> set[str]:
    """The runs that any playbook's entries name: those that filed them last, and those that hold their content."""
    names = {key.split("/")[1] for key in store.list("backlog/")}
    filed = (entry for name in names for entry in entries(store, name))
    return {key.split("/")[1] for entry in filed for key in (f"runs/{entry.run}", entry.place) if key}


def due(store: Store, playbook: str, besides: Collection[str] = (), taken: Container[Item] = ()) -> list[Entry]:
    """What a night tries again, but for what the runs `besides` have filed and the traces that are `taken`; at most
    `MOST_AT_ONCE`.
    """
    every = (entry for entry in entries(store, playbook) if entry.run not in besides)
    filed = (entry for entry in every if Item(id=entry.trace_id, digest=entry.digest) not in taken)
    return one_of_each_id(entry for entry, reason in standing(store, filed) if not reason)[:MOST_AT_ONCE]


def one_of_each_id(filed: Iterable[Entry]) -> list[Entry]:
    """Of several traces of one id only one, since ids in a run are unique; the others wait for the next time."""
    return list({entry.trace_id: entry for entry in sorted(filed, key=lambda entry: entry.name)}.values())


def request_of(request: RunRequest, chosen: Sequence[Entry]) -> RunRequest:
    """The request that learns these entries of a playbook's backlog as `request` learns, from where they lie in the
    store. No number of failures fails it, in a row or not, for there all have failed before.
    """
    place = f"{request.store}/{_folder(request.playbook)}".rstrip("/")
    uri = f"{place}#{','.join(sorted(entry.id for entry in chosen))}"
    size = request.settings.batch_size
    known = size if isinstance(size, int) else request.settings.sizes.fallback
    settings = _undaunted(request.settings).model_copy(update={"max_failed": 1.0, "batch_size": known})
    source = Source(kind="backlog", uris=(uri,), ground_truth=request.source.ground_truth)
    return request.model_copy(update={"source": source, "settings": settings, "again": True})


def gone_on_with(begun: RunRequest, request: RunRequest) -> RunRequest:
    """A request of `request_of` whose run had begun, with the caps, patience and place of the present `request`."""
    return begun.model_copy(update={"settings": _undaunted(begun.settings.placed_as(request.settings))})


def _undaunted(settings: RunSettings) -> RunSettings:
    """What has failed before may fail again in a row; that nobody is there is noticed all the same."""
    breaker = settings.model.breaker and _NEVER
    return settings.model_copy(update={"model": settings.model.model_copy(update={"breaker": breaker})})


def drop(store: Store, playbook: str, filed: Iterable[Entry]) -> None:
    """Take entries out, for good."""
    for key, those in _by_object(playbook, filed).items():
        _change(store, key, {entry.name: None for entry in those})


def _by_object(playbook: str, filed: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    together: dict[str, list[Entry]] = defaultdict(list)
    for entry in filed:
        together[f"{_folder(playbook)}{entry.name[:2]}.json"].append(entry)
    return together


def _change(store: Store, key: str, changes: Mapping[str, Entry | None]) -> None:
    """Put in what is an entry, take out what is None; what others change meanwhile stays changed."""
    while True:
        blob = store.read(key)
        held = ((read_record(Shelf, blob.data) if blob else None) or Shelf()).entries
        news = {name: _joined(held.get(name), new) for name, new in changes.items()}
        after = {name: entry for name, entry in {**held, **news}.items() if entry}
        data = write_record(Shelf(entries=after))
        if after == held or store.replace(key, data, blob.tag if blob else None):
            return


def _joined(held: Entry | None, new: Entry | None) -> Entry | None:
    """The newer reason; content and day stay as they were, and a try by another run is counted once."""
    if held is None or new is None:
        return new
    tried = new.tries if new.run != held.run else 0
    kept = {"place": held.place or new.place, "day": held.day or new.day}
    return new.model_copy(update={**kept, "tries": held.tries + tried})


def _folder(playbook: str) -> str:
    return f"backlog/{playbook}/"
