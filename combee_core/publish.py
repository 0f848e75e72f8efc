"""A run's states → one published version. Idempotent: the same run publishes once, however often this is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from combee_core.base import is_simulated
from combee_core.errors import UsageError
from combee_core.ports import Applied, Learner
from combee_core.rebase import rebase
from combee_core.records import Plan, State
from combee_core.types import SetAside, Update
from combee_core.versions import Version, Versions


def base_state(plan: Plan, versions: Versions, learner: Learner[Any]) -> Any:
    """The learner's state that the plan started from."""
    return learner.load(versions.get(plan.base_version).state) if plan.base_version else learner.empty()


def publish(
    plan: Plan, states: Sequence[State], versions: Versions, learner: Learner[Any], *, flow_run_id: str
) -> tuple[Version | None, tuple[SetAside, ...]]:
    """The version that holds what the run learned, and what a newer `latest` did not let it apply.

    None while there is no version at all and nothing was learned. Content that is already there makes no new version.
    `states` is gone through once, and once more if `latest` moved; no more than one of them is held.
    Raises `StoreError` if other writers keep winning, and `UsageError` as `refuse_mixing` does.
    """
    models = _models(states)

    def attempt(latest: Version | None) -> tuple[Version | None, tuple[SetAside, ...]] | None:
        done = _already(plan, versions)
        if done:
            return done, done.set_aside
        applied = _on(latest, plan, states, versions, learner)
        before = learner.digest(learner.load(latest.state) if latest else learner.empty())
        if learner.digest(applied.state) == before:
            return latest, applied.set_aside
        for model in models:
            refuse_mixing(latest, model)
        signed = {"flow_run_id": flow_run_id, "models": models, "learned_by": _learned_by(latest, models)}
        published = versions.publish(_draft(plan, latest, applied, learner).model_copy(update=signed))
        return (published, applied.set_aside) if published else None

    return versions.advance(attempt)


def _already(plan: Plan, versions: Versions) -> Version | None:
    for version in versions.chain():
        if version.version <= plan.base_version:
            return None
        if version.run == plan.key:
            return version
    return None


def _on(
    latest: Version | None, plan: Plan, states: Sequence[State], versions: Versions, learner: Learner[Any]
) -> Applied[Any]:
    """The last state as it is, or, if `latest` moved meanwhile, all updates applied again to it."""
    number = latest.version if latest else 0
    if number == plan.base_version:
        last = states[-1].state if states else learner.dump(base_state(plan, versions, learner))
        return Applied(learner.load(last))
    base = learner.load(latest.state) if latest else learner.empty()
    steps = _steps(base_state(plan, versions, learner), states, learner)
    return rebase(steps, base, learner=learner, version=number + 1)


def _steps(before: Any, states: Iterable[State], learner: Learner[Any]) -> Iterator[tuple[Update, Any]]:
    """Each update and the state that it was made for."""
    for state in states:
        yield state.update, before
        before = learner.load(state.state)


def _draft(plan: Plan, latest: Version | None, applied: Applied[Any], learner: Learner[Any]) -> Version:
    """The version that would follow `latest`; a run of an older day leaves `as_of` where it is."""
    day, before = plan.request.source.day, latest.as_of if latest else None
    number = latest.version if latest else 0
    return Version(
        playbook=plan.request.playbook,
        version=number + 1,
        parent=number,
        digest=learner.digest(applied.state),
        learner=learner.name,
        state=learner.dump(applied.state),
        run=plan.key,
        day=day,
        as_of=max(filter(None, (day, before)), default=None),
        set_aside=applied.set_aside,
    )


def _models(states: Iterable[State]) -> tuple[str, ...]:
    """The models whose answers the states were made of."""
    receipts = (receipt for state in states for receipt in state.receipts if receipt.accepted)
    return tuple(sorted({receipt.model for receipt in receipts if receipt.model}))


def _learned_by(latest: Version | None, models: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*(latest.learned_by if latest else ()), *models}))


def refuse_mixing(latest: Version | None, model: str) -> None:
    """Raise `UsageError` where the stand-in would write into a playbook that a real model has learned."""
    real = [name for name in (latest.learned_by if latest else ()) if not is_simulated(name)]
    if latest and is_simulated(model) and real:
        raise UsageError(
            f"playbook {latest.playbook} was learned by {real[0]}; the simulated stand-in would spoil it. "
            "Name a model with --model, or another playbook with --playbook"
        )
