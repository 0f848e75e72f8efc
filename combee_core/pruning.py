"""What a store may forget: saved answers, task results, runs and versions that nobody can ask about any more.

Nothing that was written since a given moment goes. Of what is older there go the `POOLS`, each object by its own age;
versions that `latest` does not lead back to; runs with all their records, and the marks of attempts at them; pointers
from flow runs to runs, and the days that nights have chosen. Of these there stay

- every version that `latest` leads back to, and all records of the runs that made them, so that `why` still answers;
- the runs that a backlog's entries name, since they hold the traces that wait there;
- the records of a run that is not finished and was worked on since, every answer since its plan, and the pointers and
  nights of the flow runs that have worked on it;
- a night that has noted what became of a day since.

Day markers, backlog and measurements stay, and so do the names of ordered backfills: one that was given a second time
would find its days learned.

A run's folder is emptied while its lease is held, states from the last to the first and the plan at the end: whoever
is killed in between leaves a run that can be gone on with, or a finished one, and the rest for the next time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby

from combee_core.backlog import runs_named
from combee_core.base import Noun
from combee_core.errors import RunHeld
from combee_core.ports import Aged, Store
from combee_core.saving import read_record
from combee_core.versions import Version, Versions, playbooks

POOLS = {
    "saved answers": "answers/",
    "saved embeddings": "embeddings/",
    "task results": "results/",
    "spending of past days": "spent/",
    "leftovers of probes": "probe/",
}
"""Kinds of objects that belong to no single run: each goes by its own age."""

_HOLDER = "combee gc"
_AT_ONCE = 16
_LAST = ("result.json", "plan.json")


class Pruned(Noun):
    """What went, or would go: objects and bytes by kind. `held` are runs that a live process works on."""

    objects: dict[str, int]
    bytes: dict[str, int]
    held: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFolder:
    """All objects of one run but the lease."""

    key: str
    objects: tuple[Aged, ...]

    @property
    def began(self) -> datetime:
        """When its first object was written: the plan."""
        return min(one.written for one in self.objects)

    @property
    def touched(self) -> datetime:
        """When somebody last worked on it."""
        return max(one.written for one in self.objects)

    @property
    def is_finished(self) -> bool:
        """True once it has a result."""
        return any(_name(one) == "result.json" for one in self.objects)

    @property
    def flow_runs(self) -> set[str]:
        """The flow runs that have worked on it."""
        return {one.key.rpartition("/")[2] for one in self.objects if _name(one).startswith("flow-runs/")}


@dataclass(frozen=True)
class Gc:
    """One sweep over a store: what was written before `before` (aware) may go. `dry` only counts.

    Raises `StoreError` where a chain of versions is damaged, before anything is deleted.
    """

    store: Store
    before: datetime
    dry: bool = False
    _objects: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)
    _held: list[str] = field(default_factory=list)

    def sweep(self) -> Pruned:
        """Delete, or count, everything that may go."""
        orphans, doomed = self._orphans(), self._doomed_runs()
        pointers, nights = self._pointers(), self._nights()
        for kind, prefix in POOLS.items():
            self._all(kind, self._older(prefix, self._answers_before))
        for orphan in orphans:
            self._orphan(orphan)
        for folder in doomed:
            self._run(folder)
        self._all("flow run pointers", pointers)
        self._all("nights", nights)
        self._all("marks of past attempts", self._marks(doomed))
        return Pruned(objects=dict(self._objects), bytes=dict(self._bytes), held=tuple(self._held))

    @cached_property
    def _runs(self) -> list[RunFolder]:
        found = (one for one in self.store.ages("runs/") if _name(one) != "owner")
        in_order = sorted(found, key=lambda one: one.key)
        return [RunFolder(key, tuple(its)) for key, its in groupby(in_order, lambda one: one.key.split("/")[1])]

    @cached_property
    def _chains(self) -> dict[str, str]:
        """The key of every version that a `latest` leads back to, and the run that made it."""
        chains = (Versions(self.store, name).links() for name in playbooks(self.store))
        return {key: version.run for chain in chains for key, version in chain}

    @cached_property
    def _answers_before(self) -> datetime:
        """A run that can be gone on with needs the answers since its plan, however old they are."""
        return min([self.before, *(folder.began for folder in self._unfinished)])

    @cached_property
    def _wanted(self) -> set[str]:
        """The flow runs that can be gone on with."""
        return {name for folder in self._unfinished for name in folder.flow_runs}

    @property
    def _unfinished(self) -> Iterator[RunFolder]:
        return (one for one in self._runs if not one.is_finished and one.touched >= self.before)

    def _older(self, prefix: str, than: datetime) -> Iterator[Aged]:
        return (one for one in self.store.ages(prefix) if one.written < than)

    def _orphans(self) -> list[Aged]:
        old = self._older("playbooks/", self.before)
        return [one for one in old if "/versions/" in one.key and one.key not in self._chains]

    def _doomed_runs(self) -> list[RunFolder]:
        kept = {*self._chains.values(), *runs_named(self.store)}
        return [one for one in self._runs if one.touched < self.before and one.key not in kept]

    def _pointers(self) -> list[Aged]:
        """From flow runs to runs; those that a rerun may still follow stay."""
        return [one for one in self._older("flow-runs/", self.before) if _flow_run(one) not in self._wanted]

    def _nights(self) -> list[Aged]:
        """The days that flow runs have chosen, of those that nobody goes on with: one that notes days is at work."""
        nights = list(self.store.ages("nights/"))
        kept = self._wanted | {_flow_run(one) for one in nights if one.written >= self.before}
        return [one for one in nights if _flow_run(one) not in kept]

    def _marks(self, doomed: Iterable[RunFolder]) -> list[Aged]:
        """Of attempts at runs that are gone."""
        there = {one.key for one in self._runs} - {one.key for one in doomed} | set(self._held)
        old = self._older("history/", self.before)
        return [one for one in old if one.key.rpartition("/")[2].partition("-")[2] not in there]

    def _orphan(self, one: Aged) -> None:
        """Under the lease of the run that made it: it may be about to publish this very object."""
        blob = self.store.read(one.key)
        made = read_record(Version, blob.data) if blob else None
        run = made.run if made else ""
        try:
            with self._lease(run) if run else nullcontext():
                if one.key not in {key for key, _ in Versions(self.store, one.key.split("/")[1]).links()}:
                    self._all("orphan versions", [one])
        except RunHeld:
            self._held.append(run)

    def _run(self, folder: RunFolder) -> None:
        kind = "records of finished runs" if folder.is_finished else "records of runs that never finished"
        try:
            with self._lease(folder.key):
                now = [one for one in self.store.ages(f"runs/{folder.key}/") if _name(one) != "owner"]
                if all(one.written < self.before for one in now):
                    for one in _plan_last(now):
                        self._all(kind, [one])
        except RunHeld:
            self._held.append(folder.key)

    def _lease(self, run: str) -> AbstractContextManager[None]:
        return nullcontext() if self.dry else self.store.lease(f"runs/{run}/owner", _HOLDER)

    def _all(self, kind: str, objects: Iterable[Aged]) -> None:
        found = list(objects)
        self._objects[kind] += len(found)
        self._bytes[kind] += sum(one.size for one in found)
        if found and not self.dry:
            with ThreadPoolExecutor(min(_AT_ONCE, len(found))) as pool:
                list(pool.map(self.store.delete, [one.key for one in found]))


def _name(one: Aged) -> str:
    """Of an object of a run: its key without the run's folder."""
    return one.key.split("/", 2)[-1]


def _flow_run(one: Aged) -> str:
    """Which flow run it is about: `flow-runs/<id>`, `flow-runs/<id>.<part>`, `nights/<id>.json` or `nights/<id>/…`."""
    return one.key.split("/")[1].partition(".")[0]


def _plan_last(objects: Sequence[Aged]) -> list[Aged]:
    """States from the last to the first, then the rest, then the result, then the plan."""
    from_the_end = sorted(objects, key=lambda one: one.key, reverse=True)
    return sorted(from_the_end, key=lambda one: _LAST.index(_name(one)) if _name(one) in _LAST else -1)
