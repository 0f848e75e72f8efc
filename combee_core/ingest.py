"""Trace files to trajectories; what cannot become one is named with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from combee_core.days import Window, holds, moment_of
from combee_core.errors import CombeeError
from combee_core.ports import ReadOptions, TraceReader
from combee_core.traces.values import agent_ran
from combee_core.types import TraceFile, Trajectory, Unread


@dataclass(frozen=True)
class Ingested:
    """Every run once, sorted by id, and everything that is not among them.

    An `unread` item with a trace id stands for a run that is skipped; one without stands for a file.
    `by_format` counts trajectories by the name of their format.
    """

    trajectories: tuple[Trajectory, ...] = ()
    unread: tuple[Unread, ...] = ()
    by_format: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Run:
    trajectory: Trajectory
    format: str
    moment: datetime


@dataclass(frozen=True)
class _Lost:
    """`moment` is None for a file that could not even be opened; such a one belongs to every window."""

    unread: Unread
    moment: datetime | None = None


def ingest(
    files: Iterable[TraceFile | Unread],
    readers: Sequence[TraceReader],
    options: ReadOptions,
    window: Window | None = None,
) -> Ingested:
    """Read all files; with a window keep what is of that time alone. Content never raises.

    The first reader that recognises a file's content reads it. Equal runs (same digest) count once: the
    earliest is kept. Of different runs with one id the smallest digest keeps it, the others get theirs
    appended; so ids depend neither on the order nor on the names of files.
    """
    found = [item for file in files for item in _open(file, readers, options, window)]
    first, copies = _split_copies([item for item in found if isinstance(item, _Run)])
    kept = {digest: run for digest, run in first.items() if _inside(run.moment, window)}
    ids = _unique_ids({digest: run.trajectory.trace_id for digest, run in kept.items()})
    lost = [item for item in found if isinstance(item, _Lost)]
    lost += [_copy(run, ids.get(digest, run.trajectory.trace_id)) for digest, run in copies]
    unread = [item.unread for item in lost if _inside(item.moment, window)]
    runs = (run.trajectory.model_copy(update={"trace_id": ids[digest]}) for digest, run in kept.items())
    return Ingested(
        trajectories=tuple(sorted(runs, key=lambda run: run.trace_id)),
        unread=tuple(_numbered(unread, ids.values())),
        by_format=dict(sorted(Counter(run.format for run in kept.values()).items())),
    )


def _open(
    file: TraceFile | Unread, readers: Sequence[TraceReader], options: ReadOptions, window: Window | None
) -> Iterator[_Run | _Lost]:
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
            yield _Run(item, name, moment)


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


def _split_copies(runs: Iterable[_Run]) -> tuple[dict[str, _Run], list[tuple[str, _Run]]]:
    """The earliest run of each digest, and the rest with theirs."""
    first: dict[str, _Run] = {}
    copies: list[tuple[str, _Run]] = []
    for run in sorted(runs, key=lambda run: (run.moment, run.trajectory.source)):
        digest = run.trajectory.digest
        if first.setdefault(digest, run) is not run:
            copies.append((digest, run))
    return first, copies


def _copy(run: _Run, kept_as: str) -> _Lost:
    unread = Unread(where=run.trajectory.source, reason=f"duplicate of {kept_as}", trace_id=kept_as)
    return _Lost(unread, run.moment)


def _inside(moment: datetime | None, window: Window | None) -> bool:
    return window is None or moment is None or holds(window, moment)


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
