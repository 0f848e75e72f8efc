"""A run's input, read from where the request says it is."""

from __future__ import annotations

from dataclasses import dataclass

from combee_core.adapters.sources import find_files
from combee_core.config import Source
from combee_core.days import day_window
from combee_core.errors import UsageError
from combee_core.ingest import ingest
from combee_core.ports import ReadOptions, Scorer
from combee_core.records import Item
from combee_core.samples import read_samples
from combee_core.scoring import SCORERS, withheld
from combee_core.simulation.world import World
from combee_core.traces import readers
from combee_core.types import Sample, TraceFile, Trajectory, Unread

WORLD = "world:"
"""`world:240` is 240 samples of the simulated desk; `world:240:7` those of seed 7."""


@dataclass(frozen=True)
class Input:
    """Trajectories or samples, sorted by id, and what could not be read."""

    trajectories: tuple[Trajectory, ...] = ()
    samples: tuple[Sample, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def everything(self) -> tuple[Trajectory, ...] | tuple[Sample, ...]:
        """Whichever of the two there is."""
        return self.samples or self.trajectories

    @property
    def items(self) -> tuple[Item, ...]:
        """Ids and content hashes, for a plan."""
        return (
            *(Item(id=t.trace_id, digest=t.digest) for t in self.trajectories),
            *(Item(id=s.id, digest=s.digest) for s in self.samples),
        )


def load_input(source: Source) -> Input:
    """Read the source. Raises `UsageError` for a path that does not exist and for bad sample rows."""
    if source.kind == "samples":
        samples = [sample for uri in source.uris for sample in _samples(uri)]
        unique = {sample.id: sample for sample in samples}
        return Input(samples=tuple(unique[i] for i in sorted(unique))[: source.limit])
    window = day_window(source.day, source.timezone) if source.day else None
    options = ReadOptions(ground_truth=source.ground_truth, fields=source.fields)
    files = (file for uri in source.uris for file in find_files(uri))
    found = ingest(files, readers(), options, window)
    return Input(trajectories=found.trajectories[: source.limit], unread=found.unread)


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
