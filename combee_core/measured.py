"""Measured delays, kept in the store for the next run of the same learner, model, prompts and source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from statistics import median

from combee_core.base import Noun, content_hash
from combee_core.batch_size import drift
from combee_core.config import RunRequest, SizeSettings
from combee_core.ports import Store
from combee_core.saving import read_record, write_record
from combee_core.sizes import Fit, Observation

_FOLDER = "measurements/"
_KEPT = 30


class Subject(Noun):
    """What a curve holds for. `prompts` is the learner's fingerprint."""

    learner: str
    prompts: str
    model: str
    source: tuple[str, ...]

    @property
    def key(self) -> str:
        """Where its measurements lie in the store."""
        return f"{_FOLDER}{content_hash(self.model_dump(mode='json'))[:24]}.json"

    def is_like(self, other: Subject) -> bool:
        """True where nothing but the source differs."""
        return self.model_copy(update={"source": other.source}) == other


class Drift(Noun):
    """By what share a later run's iterations left the curve: 0.6 is 60 % slower, -0.3 is 30 % faster."""

    run: str
    deviation: float


class Measured(Noun):
    """The observations that a curve is fitted to, of `total` traces or samples, and how later runs compare with it.

    `settings` and `token_limit` are those that the first decision was made with. `stale` once a run has left the curve
    by more than the settings allow: the next run measures again.
    """

    subject: Subject
    total: int
    run: str
    when: datetime
    observations: tuple[Observation, ...]
    settings: SizeSettings = SizeSettings()
    token_limit: int | None = None
    drifts: tuple[Drift, ...] = ()
    stale: bool = False


def subject_of(request: RunRequest, model: str, prompts: str) -> Subject:
    """What a run's measurements hold for; `model` is the model's full name, `prompts` the learner's fingerprint."""
    source = request.source
    return Subject(
        learner=request.settings.learner,
        prompts=prompts,
        model=model,
        source=(source.kind, *sorted(source.uris)),
    )


def known(store: Store, subject: Subject) -> Measured | None:
    """The measurements of a subject; what cannot be read counts as absent."""
    blob = store.read(subject.key)
    return read_record(Measured, blob.data) if blob else None


def all_known(store: Store) -> list[Measured]:
    """Everything that was measured in a store, the newest last."""
    blobs = [store.read(key) for key in store.list(_FOLDER)]
    found = [read_record(Measured, blob.data) for blob in blobs if blob]
    return sorted((one for one in found if one), key=lambda one: one.when)


def remember(store: Store, measured: Measured) -> None:
    """Keep new measurements in the place of what was known before; of one run they are written once."""

    def renewed(before: Measured | None) -> Measured | None:
        return None if before and before.run == measured.run else measured

    _replace(store, measured.subject, renewed)


def deviation_of(later: Sequence[Observation], fit: Fit) -> float | None:
    """By what share later iterations left the curve, the median over them; None where nothing can be compared.

    Those far smaller or larger than what was measured are left out, and cold ones beside warm ones.
    """
    known = [one for one in later if _is_within(one, fit)]
    warm = [one for one in known if not one.cold] or [one.model_copy(update={"cold": False}) for one in known]
    return median(drift(fit, one) for one in warm) if warm else None


def note_drift(store: Store, subject: Subject, seen: Drift, most: float) -> None:
    """Note how a run compares with the curve, once a run; beyond the share `most` the curve is stale."""

    def noted(before: Measured | None) -> Measured | None:
        if before is None or any(one.run == seen.run for one in before.drifts):
            return None
        drifts = (*before.drifts, seen)[-_KEPT:]
        return before.model_copy(update={"drifts": drifts, "stale": before.stale or abs(seen.deviation) > most})

    _replace(store, subject, noted)


def _is_within(one: Observation, fit: Fit) -> bool:
    sizes = [point.batch_size for point in fit.points]
    return one.delay is not None and min(sizes) <= one.batch_size <= 4 * max(sizes)


def _replace(store: Store, subject: Subject, change: Callable[[Measured | None], Measured | None]) -> None:
    """Change what is known by compare-and-swap; None from `change` leaves it."""
    while True:
        blob = store.read(subject.key)
        after = change(read_record(Measured, blob.data) if blob else None)
        if after is None or store.replace(subject.key, write_record(after), blob.tag if blob else None):
            return
