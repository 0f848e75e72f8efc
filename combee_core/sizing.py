"""How a run's batch size is found: given, taken from what an earlier run measured, or still to be measured."""

from __future__ import annotations

from combee_core import batch_size
from combee_core.config import RunSettings
from combee_core.measured import Measured
from combee_core.records import Sizing
from combee_core.sizes import Decision


def first_sizing(settings: RunSettings, total: int, known: Measured | None) -> tuple[Sizing, Decision | None]:
    """The batches of `total` traces or samples, and the decision where an earlier run's curve makes one.

    `known` is what an earlier run has measured. Without a batch size in the result the profile is measured first.
    """
    if isinstance(settings.batch_size, int):
        size = settings.batch_size
        return Sizing(total=total, batch_size=size, reason=f"{size}, as given"), None
    if known and not known.stale and not settings.sizes.anew:
        decision = batch_size.decide(known.observations, settings.sizes, total, known.token_limit)
        reason = f"{decision.reason} (measured in run {known.run})"
        return Sizing(total=total, batch_size=decision.batch_size, reason=reason), decision
    sizes, reason = batch_size.candidates(settings.sizes, total)
    if sizes:
        return Sizing(total=total, profile=sizes, reason=reason), None
    decision = batch_size.decide((), settings.sizes, total)
    return Sizing(total=total, batch_size=decision.batch_size, reason=f"{reason}; {decision.reason}"), None
