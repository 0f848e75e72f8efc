"""The result of a run, finished or failed, as commands print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from combee_core.accounting import account
from combee_core.base import is_simulated
from combee_core.config import RunRequest
from combee_core.errors import ModelError, RunError, StoreError
from combee_core.ledger import STAGES, Ledger
from combee_core.records import Amounts, Failure, Plan, RunResult, State, TraceFate
from combee_core.shuffle import SMALLEST
from combee_core.tally import Tally, tally
from combee_core.types import SetAside
from combee_core.versions import Version

EMPTY_VERSION = 0


def finished(
    plan: Plan,
    states: Sequence[State],
    version: Version | None,
    empty_digest: str,
    set_aside: Iterable[SetAside],
    ledger: Ledger,
) -> RunResult:
    """The result of a run whose version stands; version 0 with the empty state's digest while there is none.

    `states` is gone through twice; no more than one of them is held.
    """
    all_in_all = tally(states, set_aside)
    return RunResult(
        version=version.version if version else EMPTY_VERSION,
        digest=version.digest if version else empty_digest,
        groups=all_in_all.groups,
        calls=all_in_all.calls,
        survival=all_in_all.survival,
        set_aside=all_in_all.set_aside,
        more_set_aside=all_in_all.more_set_aside,
        note=_note(plan, all_in_all),
        **_accounted(plan, all_in_all.fates),
        **_spent(plan, states, all_in_all.models, ledger),
    )


def failed(plan: Plan, states: Sequence[State], failure: Failure, ledger: Ledger) -> RunResult:
    """The result of a run that published nothing: what it had learned so far is deferred. `states` as in `finished`."""
    so_far = tally(states)
    held = (
        replace(fate, fate="deferred", reason="not published") if fate.fate == "learned" else fate
        for fate in so_far.fates
    )
    spent = _spent(plan, states, so_far.models, ledger)
    return RunResult(version=None, digest=None, error=failure, **_accounted(plan, held), **spent)


def never_begun(request: RunRequest, error: BaseException, flow_run_id: str = "") -> RunResult:
    """The result of a run that failed before it had a plan."""
    return RunResult(
        playbook=request.playbook,
        flow_run_id=flow_run_id,
        version=None,
        digest=None,
        simulated=is_simulated(request.settings.model.model),
        model_calls=dict.fromkeys(STAGES, 0),
        error=failure_of(error, request),
    )


def failure_of(error: BaseException, request: RunRequest) -> Failure:
    """Where a run failed: the stage and item that the error names, else the boundary that it belongs to."""
    if isinstance(error, RunError):
        stage, item = error.stage or "run", error.item
    elif isinstance(error, ModelError):
        stage, item = "model", request.settings.model.model
    elif isinstance(error, StoreError):
        stage, item = "store", request.store
    else:
        stage, item = "start", request.playbook
    return Failure(stage=stage, item=item, message=str(error) or type(error).__name__)


def replayed(result: RunResult) -> RunResult:
    """A recorded result as a later invocation prints it: the same, but nothing was asked and nothing spent."""
    idle = {"this_run": 0}
    return result.model_copy(
        update={
            "model_calls": dict.fromkeys(STAGES, 0),
            "tokens": result.tokens.model_copy(update=idle),
            "cost": result.cost.model_copy(update=idle),
        }
    )


def _note(plan: Plan, made: Tally) -> str:
    day = f" for {plan.request.source.day}" if plan.request.source.day else ""
    if not plan.items:
        skipped = sum(bool(unread.trace_id) for unread in plan.unread)
        return f"no usable traces{day}: all {skipped} were skipped" if skipped else f"no traces{day}"
    where = f"batch {', '.join(map(str, made.single))}: " if made.batches > 1 else ""
    return f"{where}single group: fewer than {SMALLEST} reflections" if made.single else ""


def _accounted(plan: Plan, fates: Iterable[TraceFate]) -> dict[str, Any]:
    table, unsettled = account(plan, fates)
    left_out = tuple(unread for unread in plan.unread if not unread.trace_id)
    return {"accounting": table, "fates": unsettled, "left_out": left_out}


def _spent(plan: Plan, states: Sequence[State], models: Iterable[str], ledger: Ledger) -> dict[str, Any]:
    known = (receipt for state in states for receipt in state.receipts)
    now, ever = ledger.spend(plan.key), ledger.total(plan.key, known)
    return {
        "playbook": plan.request.playbook,
        "run": plan.key,
        "simulated": any(map(is_simulated, {plan.request.settings.model.model, *models})),
        "model_calls": ledger.calls(plan.key),
        "tokens": Amounts(this_run=now.tokens, total=ever.tokens, at_least=ever.tokens_at_least),
        "cost": Amounts(this_run=now.cost, total=ever.cost, at_least=ever.cost_at_least),
    }
