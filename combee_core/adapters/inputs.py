"""A run's input, read from where the request says it is."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from combee_core.adapters.filed import Filed, load_filed
from combee_core.adapters.sources import Wanted, find_files
from combee_core.adapters.spool import FileSpool
from combee_core.config import Source
from combee_core.days import SLACK, Window, day_window, may_hold
from combee_core.errors import UsageError
from combee_core.events import event
from combee_core.ingest import ingest, ingest_days
from combee_core.ports import ReadOptions, Scorer
from combee_core.records import Item
from combee_core.samples import read_samples
from combee_core.scoring import SCORERS, withheld
from combee_core.simulation.world import World
from combee_core.spool import Catalogue, Entry
from combee_core.traces import readers
from combee_core.types import Sample, TraceFile, Trajectory, Unread

WORLD = "world:"
"""`world:240` is 240 samples of the simulated desk; `world:240:7` those of seed 7."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Input:
    """Trajectories or samples, which lie in a temporary file, and what could not be read."""

    everything: Catalogue[Trajectory] | Catalogue[Sample] | Filed
    unread: tuple[Unread, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """Ids and content hashes, sorted by id, for a plan."""
        return self.everything.items

    def pick(self, wanted: Iterable[Item]) -> tuple[Trajectory, ...] | tuple[Sample, ...]:
        """What these items of a plan stand for, in the order asked for.

        Raises `UsageError` naming one that is gone, or has another content than the plan says.
        """
        return self.everything.pick(wanted)


def load_input(source: Source) -> Input:
    """Read the source once. Raises `UsageError` for a path that does not exist, for none, and for bad sample rows.

    Memory grows with the largest file; of everything else it holds the ids and hashes.
    """
    if source.kind == "backlog":
        return Input(load_filed(source.uris))
    if not source.uris:
        raise UsageError("nothing to learn from: the source names no files, folders or s3:// prefixes (uris)")
    if source.kind == "samples":
        return Input(_catalogue(sample for uri in source.uris for sample in _samples(uri))[: source.limit])
    if source.day:
        return load_days(source, source.day, source.day)[source.day]
    found = ingest(_files(source), readers(), _options(source), None, FileSpool(Trajectory))
    return Input(found.trajectories[: source.limit], found.unread)


def load_days(source: Source, first: date, last: date) -> dict[date, Input]:
    """The input of each day from `first` to `last`, as `load_input` would give it, from one reading of the source.

    Files that were last changed too early to hold any of it are not read; the log says how many.
    Raises `UsageError` as it does, and for a source that does not hold traces.
    """
    if source.kind != "traces":
        raise UsageError(
            f"days are learned from traces; the source's kind is {source.kind} (combee learn takes samples)"
        )
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    windows = [day_window(day, source.timezone) for day in days]
    found = ingest_days(_files_of(source, windows[0]), readers(), _options(source), windows, FileSpool(Trajectory))
    return {day: Input(one.trajectories[: source.limit], one.unread) for day, one in zip(days, found, strict=True)}


def _options(source: Source) -> ReadOptions:
    return ReadOptions(ground_truth=source.ground_truth, fields=source.fields)


def _files(source: Source, wanted: Wanted = lambda _: True) -> Iterator[TraceFile | Unread]:
    return (file for uri in source.uris for file in find_files(uri, wanted=wanted))


def _files_of(source: Source, window: Window) -> Iterator[TraceFile | Unread]:
    """Those that may hold runs of the window or of later ones."""
    older = 0

    def wanted(modified: datetime) -> bool:
        nonlocal older
        may = may_hold(window, modified)
        older += not may
        return may

    yield from _files(source, wanted)
    if older:
        text = f"{older} files were last changed before {window.start - SLACK:%Y-%m-%d} and were not read"
        event(_log, logging.INFO, "files-not-read", text, files=older)


def _catalogue(samples: Iterable[Sample]) -> Catalogue[Sample]:
    spool = FileSpool(Sample)
    unique = {sample.id: Entry(sample.id, sample.digest, spool.put(sample)) for sample in samples}
    return Catalogue(spool, unique.values())


def scorer_of(source: Source) -> Scorer:
    """The judge of the source's samples; without ground truth it gives the score and nothing else."""
    in_world = any(uri.startswith(WORLD) for uri in source.uris)
    scorer = _world(source.uris[0]).score if in_world else SCORERS[source.scorer]
    return scorer if source.ground_truth else withheld(scorer)


def _samples(uri: str) -> tuple[Sample, ...]:
    if uri.startswith(WORLD):
        count = uri.split(":")[1]
        if not count.isdecimal():
            raise UsageError(f"{uri}: write {WORLD}240 for 240 samples, or {WORLD}240:7 for those of seed 7")
        return _world(uri).sample(int(count), _seed(uri), "train")
    return tuple(sample for file in find_files(uri) for sample in _read(file))


def _read(file: TraceFile | Unread) -> tuple[Sample, ...]:
    if isinstance(file, Unread):
        raise UsageError(f"{file.where}: {file.reason}")
    return read_samples(file.data, file.uri)


def _world(uri: str) -> World:
    return World(_seed(uri))


def _seed(uri: str) -> int:
    parts = uri.split(":")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdecimal() else 0
