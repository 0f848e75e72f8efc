"""Trace files to trajectories; what cannot become one is named with its reason."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from combee_core.days import Window, holds, moment_of
from combee_core.errors import CombeeError
from combee_core.ports import ReadOptions, TraceReader
from combee_core.spool import Catalogue, Entry, MemorySpool, Spool
from combee_core.traces.values import agent_ran
from combee_core.types import TraceFile, Trajectory, Unread


@dataclass(frozen=True)
class Ingested:
    """Every run once, sorted by id, and everything that is not among them.

    An `unread` item with a trace id stands for a run that is skipped; one without stands for a file.
    `by_format` counts trajectories by the name of their format.
    """

    trajectories: Catalogue[Trajectory]
    unread: tuple[Unread, ...] = ()
    by_format: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Run:
    """What memory holds of a run while all are read."""

    trace_id: str
    digest: str
    number: int
    format: str
    moment: datetime
    source: str


class _Lost(NamedTuple):
    """`moment` is None for a file that could not even be opened; such a one belongs to every window."""

    unread: Unread
    moment: datetime | None = None


class _Found(NamedTuple):
    trajectory: Trajectory
    format: str
    moment: datetime


def ingest(
    files: Iterable[TraceFile | Unread],
    readers: Sequence[TraceReader],
    options: ReadOptions,
    window: Window | None = None,
    spool: Spool[Trajectory] | None = None,
) -> Ingested:
    """Read all files; with a window keep what is of that time alone. Content never raises.

    The first reader that recognises a file's content reads it. Equal runs (same digest) count once: the
    earliest is kept. Of different runs with one id the smallest digest keeps it, the others get theirs
    appended; so ids depend neither on the order nor on the names of files.

    Trajectories go into the spool one by one: memory holds one file and, of each run, its id and hashes.
    """
    spool = MemorySpool() if spool is None else spool
    if window:
        return ingest_days(files, readers, options, [window], spool)[0]
    sieve = _Sieve(spool)
    for file in files:
        for item in _open(file, readers, options, None):
            sieve.add(item)
    return sieve.result()


def ingest_days(
    files: Iterable[TraceFile | Unread],
    readers: Sequence[TraceReader],
    options: ReadOptions,
    windows: Sequence[Window],
    spool: Spool[Trajectory],
) -> list[Ingested]:
    """What each of several windows holds, as `ingest` would give it for that window alone, from one reading.

    `windows` follow each other without a gap.
    """
    days = _Days(windows, spool)
    for file in files:
        for item in _open(file, readers, options, windows[0]):
            days.add(item)
    return list(days.results())


class _Days:
    """A sieve for each window, and the hashes of what came before the first one."""

    def __init__(self, windows: Sequence[Window], spool: Spool[Trajectory]) -> None:
        self._windows = windows
        self._starts = [window.start.astimezone(UTC) for window in windows]
        self._sieves = [_Sieve(spool) for _ in windows]
        self._before: set[bytes] = set()

    def add(self, item: _Found | _Lost) -> None:
        """Take one run or loss; what could not be opened belongs to every window."""
        if item.moment is None:
            for sieve in self._sieves:
                sieve.add(item)
        elif at := bisect_right(self._starts, item.moment):
            if holds(self._windows[at - 1], item.moment):
                self._sieves[at - 1].add(item)
        elif isinstance(item, _Found):
            # That it was there is enough to know a copy by. What comes after the windows is nobody's original.
            self._before.add(bytes.fromhex(item.trajectory.digest))

    def results(self) -> Iterator[Ingested]:
        """Each window's, in order: a run of one is what its copies in later ones are known by."""
        for sieve in self._sieves:
            yield sieve.result(self._before)
            self._before |= sieve.digests


class _Sieve:
    """Of equal runs the earliest, whatever order they come in."""

    def __init__(self, spool: Spool[Trajectory]) -> None:
        self._spool = spool
        self._first: dict[str, _Run] = {}
        self._copies: list[_Run] = []
        self._unread: list[Unread] = []

    def add(self, item: _Found | _Lost) -> None:
        """Take one run or loss."""
        if isinstance(item, _Lost):
            self._unread.append(item.unread)
        else:
            self._keep(*item)

    @property
    def digests(self) -> set[bytes]:
        """Of every run that was met."""
        return {bytes.fromhex(digest) for digest in self._first}

    def result(self, before: Set[bytes] = frozenset()) -> Ingested:
        """Everything, when all has been added; a run that was there `before` is only a copy."""
        known = {digest for digest in self._first if bytes.fromhex(digest) in before}
        kept = {digest: run for digest, run in self._first.items() if digest not in known}
        ids = _unique_ids({digest: run.trace_id for digest, run in kept.items()})
        copies = (*self._copies, *(self._first[digest] for digest in known))
        unread = [*self._unread, *(_copy(run, ids.get(run.digest, run.trace_id)) for run in copies)]
        return Ingested(
            trajectories=Catalogue(self._spool, (self._entry(run, ids[run.digest]) for run in kept.values())),
            unread=tuple(_numbered(unread, ids.values())),
            by_format=dict(sorted(Counter(run.format for run in kept.values()).items())),
        )

    def _keep(self, trajectory: Trajectory, name: str, moment: datetime) -> None:
        digest, source = trajectory.digest, trajectory.source
        held = self._first.get(digest)
        stays = held is not None and (held.moment, held.source) <= (moment, source)
        number = -1 if stays else self._spool.put(trajectory)
        run = _Run(trajectory.trace_id, digest, number, name, moment, source)
        if held:
            self._copies.append(run if stays else held)
        if not stays:
            self._first[digest] = run

    def _entry(self, run: _Run, name: str) -> Entry:
        if name == run.trace_id:
            return Entry(name, run.digest, run.number)
        renamed = self._spool.get(run.number).model_copy(update={"trace_id": name})
        return Entry(name, renamed.digest, self._spool.put(renamed))


def _open(
    file: TraceFile | Unread, readers: Sequence[TraceReader], options: ReadOptions, window: Window | None
) -> Iterator[_Found | _Lost]:
    if isinstance(file, Unread):
        yield _Lost(file)
        return
    for item, name in _read(file, readers, options):
        logged = item.when if isinstance(item, Trajectory) else None
        moment = moment_of(logged, file.modified, window)
        if isinstance(item, Unread):
            yield _Lost(item, moment)
        elif not agent_ran(item.steps):
            idle = Unread(where=item.source, reason="agent never started", trace_id=item.trace_id)
            yield _Lost(idle, moment)
        else:
            yield _Found(item, name, moment)


def _read(
    file: TraceFile, readers: Sequence[TraceReader], options: ReadOptions
) -> Iterator[tuple[Trajectory | Unread, str]]:
    name = "the first"
    try:
        for reader in readers:
            name = reader.name
            if reader.recognises(file):
                yield from ((item, name) for item in reader.read(file, options))
                return
    except CombeeError:
        raise
    except Exception as error:  # noqa: BLE001 - formats are plug-ins: a fault in one costs its file, not the night
        reason = f"the reader {name} failed: {type(error).__name__}: {error}"
        yield Unread(where=file.uri, reason=reason), name
        return
    yield Unread(where=file.uri, reason="unknown format" if file.data else "unknown format: empty file"), ""


def _copy(run: _Run, kept_as: str) -> Unread:
    return Unread(where=run.source, reason=f"duplicate of {kept_as}", trace_id=kept_as)


def _unique_ids(ids: Mapping[str, str]) -> dict[str, str]:
    """An id for each digest, its own where no smaller digest has it."""
    taken = set(ids.values())
    given: dict[str, str] = {}
    owner: dict[str, str] = {}
    for digest in sorted(ids):
        name = ids[digest]
        if owner.setdefault(name, digest) != digest:
            short = f"{name}-{digest[:8]}"
            name = f"{name}-{digest}" if short in taken else short
            taken.add(name)
        given[digest] = name
    return given


def _numbered(unread: Iterable[Unread], taken: Iterable[str]) -> Iterator[Unread]:
    """In a fixed order, with an id of its own for each that stands for a run: `x`, `x#2`, `x#3`."""
    used = set(taken)
    count: Counter[str] = Counter()
    for item in sorted(unread, key=lambda item: (item.where, item.reason, item.trace_id)):
        name = item.trace_id
        while name and name in used:
            count[item.trace_id] += 1
            name = f"{item.trace_id}#{count[item.trace_id] + 1}"
        used.add(name)
        yield item.model_copy(update={"trace_id": name})
