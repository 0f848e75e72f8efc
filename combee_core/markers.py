"""Which traces of a day were learned, and by which runs: `days/<playbook>/<source>/<day>.json`.

A day without a marker was never learned to the end. What its source holds and its marker does not name came late, or
has changed.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import date

from pydantic import ValidationError

from combee_core.base import Noun, content_hash
from combee_core.config import RunRequest
from combee_core.errors import StoreError
from combee_core.ports import Store
from combee_core.records import Item, Plan


class LearnedBy(Noun):
    """One run of the day, the version that stood at its end, and the traces that it was the last to learn from."""

    run: str
    version: int | None = None
    items: tuple[Item, ...] = ()


class DayMarker(Noun):
    """A day of one source, in one time zone, as one playbook has learned it; `runs` in the order they ended."""

    playbook: str
    uris: tuple[str, ...]
    timezone: str
    day: date
    runs: tuple[LearnedBy, ...] = ()

    @property
    def traces(self) -> int:
        """How many traces were learned."""
        return sum(len(one.items) for one in self.runs)

    @property
    def keys(self) -> Set[str]:
        """The runs that have marked this day."""
        return {one.run for one in self.runs}

    def has(self, run: str) -> bool:
        """True for a run that has marked this day."""
        return run in self.keys

    def after(self, plan: Plan, version: int | None = None, deferred: Set[str] = frozenset()) -> DayMarker:
        """The marker once `plan` is learned but for what it `deferred`: its traces replace those that had their ids."""
        if self.has(plan.key):
            return self
        learned = tuple(item for item in plan.items if item.id not in deferred)
        ids = {item.id for item in learned}
        rest = (tuple(item for item in one.items if item.id not in ids) for one in self.runs)
        kept = (one.model_copy(update={"items": its}) for one, its in zip(self.runs, rest, strict=True))
        return self.model_copy(update={"runs": (*kept, LearnedBy(run=plan.key, version=version, items=learned))})


@dataclass(frozen=True)
class News:
    """The traces that a marker does not know; `changed` are the ids of those that it knows with another content."""

    items: tuple[Item, ...] = ()
    changed: tuple[str, ...] = ()


def marker_of(store: Store, request: RunRequest) -> DayMarker:
    """The marker of the request's day; one without runs where there is none.

    Raises `StoreError` naming a marker that cannot be read.
    """
    return _read(store, request)[0]


def news(marker: DayMarker, items: Sequence[Item]) -> News:
    """What of a day's traces the marker does not know as they are now."""
    known = {item.id: item.digest for one in marker.runs for item in one.items}
    new = tuple(item for item in items if known.get(item.id) != item.digest)
    return News(items=new, changed=tuple(item.id for item in new if item.id in known))


def mark(store: Store, plan: Plan, version: int | None, deferred: Set[str] = frozenset()) -> DayMarker:
    """Write that this plan's run has learned its traces of its day, and that `version` stood at its end.

    The ids that it `deferred` stay news. What others mark meanwhile stays marked.
    """
    while True:
        before, tag = _read(store, plan.request)
        after = before.after(plan, version, deferred)
        if after == before or store.replace(_key(plan.request), after.model_dump_json().encode(), tag):
            return after


def _read(store: Store, request: RunRequest) -> tuple[DayMarker, str | None]:
    source, key = request.source, _key(request)
    if source.day is None:
        raise ValueError("a run without a day has no day marker")
    blob = store.read(key)
    if blob is None:
        uris = tuple(sorted(source.uris))
        return DayMarker(playbook=request.playbook, uris=uris, timezone=source.timezone, day=source.day), None
    try:
        return DayMarker.model_validate_json(blob.data), blob.tag
    except ValidationError as error:
        raise StoreError(
            f"{store.uri}/{key} is no day marker; move it away, and the day is learned again (saved answers are not "
            "paid for twice)"
        ) from error


def _key(request: RunRequest) -> str:
    source = request.source
    where = content_hash("traces", sorted(source.uris), source.timezone)[:16]
    return f"days/{request.playbook}/{where}/{source.day}.json"
