"""How a run's batch size is found: given, taken from what an earlier run measured, or measured now."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from prefect import get_run_logger

from combee_core import batch_size, measured
from combee_core.adapters.workshop import Workshop
from combee_core.call_counts import reduce_calls
from combee_core.config import AUTO, RunRequest, SizeSettings
from combee_core.errors import RunError
from combee_core.events import event
from combee_core.measured import Drift, Measured, Subject
from combee_core.measuring import lost
from combee_core.records import Sizing
from combee_core.sizes import Decision, Observation
from combee_core.sizing import first_sizing
from combee_core.token_limit import token_limit
from tasks import report


def begin(shop: Workshop) -> Sizing:
    """Record, once, how this run's batch size is found; a rerun keeps to it."""
    if shop.run.sizing() is None:
        shop.run.begin_sizing(_sizing(shop))
        _say(shop, current(shop).reason)
    return current(shop)


def current(shop: Workshop) -> Sizing:
    """The sizing as it is known by now. Raises `RunError` before it was begun."""
    sizing = shop.run.sizing()
    if sizing is None:
        raise RunError(f"run {shop.run.key} has no batch sizes yet; run the same command again", "sizing")
    return sizing


def _sizing(shop: Workshop) -> Sizing:
    known = measured.known(shop.store, subject(shop))
    sizing, decision = first_sizing(shop.settings, len(shop.plan.items), known)
    if decision:
        report.fit(shop.run.decide(decision))
    if sizing.batch_size is None:
        reason = _announcement(shop, sizing.profile, sizing.reason, known)
        return sizing.model_copy(update={"reason": reason})
    return sizing


def _why(sizes: SizeSettings, known: Measured | None) -> str:
    if known is None:
        return "no curve is known yet"
    return "it was asked for" if sizes.anew else "the delays have left the curve of an earlier run"


def _announcement(shop: Workshop, sizes: tuple[int, ...], reason: str, known: Measured | None) -> str:
    """What measuring costs, said before it starts."""
    why = _why(shop.settings.sizes, known)
    together = sum(sizes)
    small, large = (_calls(*reduce_calls(of, shop.settings)) for of in (sizes, (together,)))
    return (
        f"measured on batches of {', '.join(map(str, sizes))}, since {why}{f' ({reason})' if reason else ''}. "
        f"No rollout or reflection is repeated; these {together} take at most {small}, "
        f"where one batch of them would take {large}"
    )


def _calls(curate: int, merge: int | None) -> str:
    merges = "merge calls for what is alike" if merge is None else f"{merge} merge calls"
    return f"{curate} curate calls and {merges}"


def subject(shop: Workshop) -> Subject:
    """What this run's measurements hold for."""
    return measured.subject_of(shop.plan.request, shop.client.model.name, shop.learner.fingerprint)


def measure_again(shop: Workshop) -> None:
    """Have sizes measured once more whose delay was lost when the run was interrupted; a rerun keeps to it."""
    sizing = current(shop)
    sizes = lost(sizing.profile, _observed(shop, sizing), sizing.total - sum(sizing.profile))
    if sizes:
        shop.run.measure_again(sizes)
        named = ", ".join(map(str, sizes))
        _say(shop, f"the run was interrupted while it measured: size {named} again, on other traces")


def _observed(shop: Workshop, sizing: Sizing) -> tuple[Observation, ...]:
    recorded = shop.run.observations(range(1, len(sizing.profile) + 1))
    return tuple(one for one in recorded if one is not None)


def decide(shop: Workshop) -> Decision:
    """The batch size from the measured batches, recorded in the run and, for the next run, in the store."""
    sizing = current(shop)
    observations = _observed(shop, sizing)
    limit = token_limit(shop.run.states(), shop.settings, shop.client.limit)
    decision = batch_size.decide(observations, shop.settings.sizes, sizing.total, limit)
    if decision.fit:
        found = Measured(
            subject=subject(shop),
            total=sizing.total,
            run=shop.run.key,
            when=datetime.now(UTC),
            observations=observations,
            settings=shop.settings.sizes,
            token_limit=limit,
        )
        measured.remember(shop.store, found)
    decision = shop.run.decide(decision)
    report.fit(decision)
    _say(shop, f"{decision.batch_size}: {decision.reason}")
    return decision


def _say(shop: Workshop, reason: str) -> None:
    event(get_run_logger(), logging.INFO, "batch-size", f"batch size: {reason}", run=shop.run.key)


def compare(shop: Workshop) -> None:
    """Look whether this run's iterations have left the curve; then the next run measures again."""
    known, decision = measured.known(shop.store, subject(shop)), shop.run.decision()
    if known is None or decision is None or decision.fit is None:
        return
    sizing = current(shop)
    recorded = shop.run.observations(range(len(sizing.profile) + 1, sizing.count + 1))
    later = [one for one in recorded if one is not None]
    deviation = measured.deviation_of(later, decision.fit)
    if deviation is None:
        return
    most = shop.settings.sizes.drift
    measured.note_drift(shop.store, known.subject, Drift(run=shop.run.key, deviation=deviation), most)
    if abs(deviation) > most:
        text = f"iterations took {deviation:+.0%} against the measured curve: the next run measures again"
        event(get_run_logger(), logging.WARNING, "delays-drifted", text, run=shop.run.key, deviation=deviation)


def anew(request: RunRequest) -> RunRequest:
    """The request as a new run that measures, whatever its settings say and an earlier run has found."""
    sizes = request.settings.sizes.model_copy(update={"anew": True})
    settings = request.settings.model_copy(update={"batch_size": AUTO, "sizes": sizes})
    return request.model_copy(update={"settings": settings, "again": True})
