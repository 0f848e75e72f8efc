"""What earlier runs of a playbook say about the next one: read from their states, delays and receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

from combee_core.expected import operations_of
from combee_core.experience import Experience, growth_of
from combee_core.pace import MEDIANS, Stage, batch_seconds
from combee_core.ports import Store
from combee_core.prompt_sizes import PromptSizes
from combee_core.publish import base_state
from combee_core.records import State
from combee_core.runs import Run
from combee_core.shuffle import copies_of, is_bounded
from combee_core.versions import Versions

RUNS = 3
"""Runs that are looked at, the last ones that published; of each the last `STATES` batches."""

STATES = 20


def observed(store: Store, playbook: str, model: str, sizes: PromptSizes, assumed: Experience) -> Experience:
    """`assumed`, with what the last runs of this playbook with this model have shown in its place.

    `model` is the model string of the settings. Nothing changes where there are no such runs. Raises `StoreError` for
    records that cannot be read.
    """
    versions = Versions(store, playbook)
    runs = list(islice(_runs(versions, model), RUNS))
    sums = _Sums()
    for run in runs:
        _look(run, versions, sizes, sums)
    seen = {name: figure for name, figure in sums.figures() if figure is not None}
    if not seen:
        return assumed
    names = {"runs": tuple(run.key for run in runs), "observed": tuple(sorted(seen))}
    return assumed.model_copy(update={**seen, **names})


def _runs(versions: Versions, model: str) -> Iterator[Run]:
    """Of the newest versions on; an import has no run."""
    for version in islice(versions.chain(), 4 * RUNS):
        run = Run(versions.store, version.run)
        if version.run and versions.store.read(run.path("plan.json")) and run.settings().model.model == model:
            yield run


@dataclass
class _Sums:
    """Sums over all batches, and the pace of each."""

    learned: int = 0
    nothing: int = 0
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEDIANS, 0))
    written: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEDIANS, 0))
    evidence: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEDIANS, 0.0))
    read: int = 0
    cached: int = 0
    knows_cache: bool = False
    entries: float = 0.0
    operations: float = 0.0
    clustered: int = 0
    merges: int = 0
    grown: list[float] = field(default_factory=list)
    paces: list[float] = field(default_factory=list)

    def figures(self) -> Iterator[tuple[str, float | None]]:
        """A figure for each field of an experience; None where nothing was seen."""
        yield "share", _mean(self.learned, self.learned + self.nothing)
        yield "trace", _mean(self.evidence["reflect"], self.calls["reflect"])
        yield "rollout", _mean(self.written["rollout"], self.calls["rollout"])
        yield "reflection", _mean(self.written["reflect"], self.calls["reflect"])
        yield "entry", _mean(self.evidence["curate"], self.entries)
        yield "operation", _mean(self.written["curate"], self.operations)
        yield "merges", _mean(self.merges, self.clustered)
        yield "growth", median(self.grown) if self.grown else None
        yield "pace", median(self.paces) if self.paces else None
        yield "cached", _mean(self.cached, self.read) if self.knows_cache else None


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None


def _look(run: Run, versions: Versions, sizes: PromptSizes, sums: _Sums) -> None:
    """Take in the last batches of a run, each with the playbook that it began with."""
    learner, done = sizes.learner, run.done
    first = max(0, done - STATES)
    before = run.state(first) if first else None
    state = learner.load(before.state) if before else base_state(run.plan(), versions, learner)
    start, learned = sizes.bullets(state), sums.learned
    for record in run.states()[first:done]:
        _take(sums, record, sizes.bullets(state), sizes.fixed)
        _time(sums, record, run)
        state = learner.load(record.state)
    if sums.learned > learned:
        sums.grown.append(growth_of(start, sizes.bullets(state), sums.learned - learned))


def _take(sums: _Sums, record: State, bullets: int, fixed: Mapping[str, int]) -> None:
    for receipt in record.receipts:
        usage = receipt.usage
        if receipt.accepted and usage.input_tokens is not None and usage.output_tokens is not None:
            sums.calls[receipt.stage] += 1
            sums.written[receipt.stage] += usage.output_tokens
            sums.evidence[receipt.stage] += max(0, usage.input_tokens - bullets - fixed.get(receipt.stage, 0))
            sums.read += usage.input_tokens
            sums.cached += usage.cached_tokens or 0
            sums.knows_cache |= usage.cached_tokens is not None
    fates = [fate.fate for fate in record.fates]
    sums.learned += fates.count("learned")
    sums.nothing += fates.count("nothing")


def _time(sums: _Sums, record: State, run: Run) -> None:
    """What depends on how the batch was reduced: entries read, operations written, merge calls; and its delay."""
    settings, learned = run.settings(), sum(fate.fate == "learned" for fate in record.fates)
    calls = Counter(receipt.stage for receipt in record.receipts if receipt.accepted)
    copies = copies_of(settings, bounded=is_bounded(settings, learned)) if record.groups > 1 else 1
    sums.entries += copies * learned
    sums.operations += operations_of(copies * learned, calls["curate"])
    if settings.merge != "paper" and record.groups > 1:
        sums.clustered += learned
        sums.merges += calls["merge"]
    (seen,) = run.observations((record.number,))
    expected = batch_seconds([Stage(stage, calls[stage]) for stage in MEDIANS], settings.model)
    if seen and seen.delay and not seen.cold and expected:
        sums.paces.append(seen.delay / expected)
