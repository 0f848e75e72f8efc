"""The result of a run, finished or failed, as commands print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from combee_core.accounting import account
from combee_core.base import is_simulated
from combee_core.config import RunRequest
from combee_core.errors import ModelError, RunError, StoreError
from combee_core.ledger import STAGES, Ledger, total
from combee_core.records import Amounts, Failure, Plan, RunResult, State, TraceFate
from combee_core.shuffle import SMALLEST
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
    """The result of a run whose version stands; version 0 with the empty state's digest while there is none."""
    everything = (*(item for state in states for item in state.set_aside), *set_aside)
    return RunResult(
        version=version.version if version else EMPTY_VERSION,
        digest=version.digest if version else empty_digest,
        groups=tuple(state.groups for state in states),
        set_aside=tuple(dict.fromkeys(everything)),
        note=_note(plan, states),
        **_common(plan, states, _fates(states), ledger),
    )


def failed(plan: Plan, states: Sequence[State], failure: Failure, ledger: Ledger) -> RunResult:
    """The result of a run that published nothing: what it had learned so far is deferred."""
    held = [
        fate.model_copy(update={"fate": "deferred", "reason": "not published"}) if fate.fate == "learned" else fate
        for fate in _fates(states)
    ]
    return RunResult(version=None, digest=None, error=failure, **_common(plan, states, held, ledger))


def never_begun(request: RunRequest, error: BaseException) -> RunResult:
    """The result of a run that failed before it had a plan."""
    return RunResult(
        playbook=request.playbook,
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


def _fates(states: Sequence[State]) -> list[TraceFate]:
    return [fate for state in states for fate in state.fates]


def _note(plan: Plan, states: Sequence[State]) -> str:
    day = f" for {plan.request.source.day}" if plan.request.source.day else ""
    if not plan.items:
        skipped = sum(bool(unread.trace_id) for unread in plan.unread)
        return f"no usable traces{day}: all {skipped} were skipped" if skipped else f"no traces{day}"
    single = [str(state.number) for state in states if state.groups == 1]
    where = f"batch {', '.join(single)}: " if plan.batch_count > 1 else ""
    return f"{where}single group: fewer than {SMALLEST} reflections" if single else ""


def _common(plan: Plan, states: Sequence[State], fates: Iterable[TraceFate], ledger: Ledger) -> dict[str, Any]:
    table, everything = account(plan, fates)
    receipts = ledger.receipts(plan.key, [receipt for state in states for receipt in state.receipts])
    now, ever = ledger.spend(plan.key), total(receipts)
    answered = (receipt.model for receipt in (*receipts, *(r for s in states for r in s.receipts)))
    models = {plan.request.settings.model.model, *answered}
    return {
        "playbook": plan.request.playbook,
        "run": plan.key,
        "simulated": any(map(is_simulated, models)),
        "accounting": table,
        "fates": everything,
        "left_out": tuple(unread for unread in plan.unread if not unread.trace_id),
        "model_calls": ledger.calls(plan.key),
        "tokens": Amounts(this_run=now.tokens, total=ever.tokens, at_least=ever.tokens_at_least),
        "cost": Amounts(this_run=now.cost, total=ever.cost, at_least=ever.cost_at_least),
    }
