"""The result of a run, finished or failed, as commands print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from combee_core.accounting import account
from combee_core.ledger import STAGES, Ledger, Spend, total
from combee_core.records import Amounts, Failure, Plan, RunResult, State
from combee_core.types import Receipt, SetAside
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
    fates = [fate for state in states for fate in state.fates]
    table, everything = account(plan, fates)
    return RunResult(
        playbook=plan.request.playbook,
        version=version.version if version else EMPTY_VERSION,
        digest=version.digest if version else empty_digest,
        run=plan.key,
        accounting=table,
        fates=everything,
        groups=tuple(state.groups for state in states),
        set_aside=(*(item for state in states for item in state.set_aside), *set_aside),
        note=_note(plan, states),
        **_spent(plan, states, ledger),
    )


def failed(plan: Plan, states: Sequence[State], failure: Failure, ledger: Ledger) -> RunResult:
    """The result of a run that published nothing: what it had learned so far is deferred."""
    fates = [fate for state in states for fate in state.fates]
    held = [f.model_copy(update={"fate": "deferred", "reason": "not published"}) if f.fate == "learned" else f for f in fates]
    table, everything = account(plan, held)
    return RunResult(
        playbook=plan.request.playbook,
        version=None,
        digest=None,
        run=plan.key,
        accounting=table,
        fates=everything,
        error=failure,
        **_spent(plan, states, ledger),
    )


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


def _note(plan: Plan, states: Sequence[State]) -> str:
    day = plan.request.source.day
    if not plan.items:
        return f"no traces for {day}" if day else "no traces"
    if any(state.groups == 1 for state in states):
        return "single group: fewer than 4 reflections"
    return ""


def _spent(plan: Plan, states: Sequence[State], ledger: Ledger) -> dict[str, object]:
    now = ledger.spend(plan.key)
    receipts = _own([r for state in states for r in state.receipts], plan.key)
    ever = total(_own([*receipts, *ledger.receipts(plan.key)], plan.key))
    return {
        "model_calls": ledger.calls(plan.key),
        "tokens": _tokens(now, ever),
        "cost": Amounts(this_run=now.cost, total=ever.cost, at_least=ever.at_least),
        "simulated": any(r.model.startswith("simulated/") for r in (*receipts, *ledger.receipts(plan.key)))
        or plan.request.settings.model.model.startswith("simulated/"),
    }


def _own(receipts: Iterable[Receipt], run: str) -> list[Receipt]:
    """Receipts that this run paid, each once."""
    unique = {(r.stage, r.item, r.prompt_sha, r.attempt): r for r in receipts if r.run == run}
    return list(unique.values())


def _tokens(now: Spend, ever: Spend) -> Amounts:
    return Amounts(this_run=now.tokens, total=ever.tokens, at_least=ever.at_least)
