"""The result of a run, finished or failed, as commands print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from combee_core.accounting import account
from combee_core.base import is_simulated
from combee_core.config import STAGES, RunRequest
from combee_core.errors import BudgetSpent, ModelAway, ModelError, RunError, RunStopped, StoreError
from combee_core.ledger import Ledger
from combee_core.records import Accounting, Amounts, Cut, Failure, Plan, RunResult, State, Status, TraceFate, together
from combee_core.shuffle import SMALLEST
from combee_core.tally import Tally, tally
from combee_core.types import SetAside
from combee_core.versions import Version

EMPTY_VERSION = 0


class NothingLearned(RunError):
    """A run was done to its end and learned from no trace, since most were refused or failed; `result` has them all."""

    def __init__(self, result: RunResult) -> None:
        failure = result.error or Failure(stage="learn", item="", message="nothing was learned")
        super().__init__(failure.message, failure.stage, failure.item)
        self.result = result

    def __reduce__(self) -> tuple[type[NothingLearned], tuple[RunResult]]:
        return NothingLearned, (self.result,)


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
    accounted = _accounted(plan, all_in_all.fates)
    barren = _barren(plan, accounted["accounting"], accounted["fates"])
    return RunResult(
        version=version.version if version else EMPTY_VERSION,
        digest=version.digest if version else empty_digest,
        groups=all_in_all.groups,
        calls=all_in_all.calls,
        survival=all_in_all.survival,
        set_aside=all_in_all.set_aside,
        more_set_aside=all_in_all.more_set_aside,
        note=_note(plan, all_in_all, accounted["accounting"]),
        status="failed" if barren else "done",
        error=barren,
        **accounted,
        **_spent(plan, states, all_in_all.models, ledger),
    )


def cut_short(result: RunResult, cut: Cut) -> RunResult:
    """The result of a run that a cap ended: what it published stands, and the rest is in the backlog.

    That it learned nothing from what it came to is a note: the cap is what there is to do something about.
    """
    rest = "; the other traces are in the backlog" if result.accounting.deferred else ""
    note = f"{cut.reason}; published: {cut.published}{rest}"
    notes = (note, result.note, result.error.message if result.error else "")
    return result.model_copy(update={"status": "budget", "note": _joined(*notes), "error": None})


def tried_again(result: RunResult) -> RunResult:
    """The result of a night's own retry of its backlog: what had failed before may fail again, and the night stands."""
    is_barren = result.error is not None and result.status == "failed"
    return result.model_copy(update={"status": "done", "error": None}) if is_barren else result


def with_note(result: RunResult, note: str, status: Status | None = None) -> RunResult:
    """The result with one more note, and with `status` where one is given."""
    return result.model_copy(update={"note": _joined(result.note, note), "status": status or result.status})


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
        status=status_of(error),
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
    elif _is_of_server(error):
        text = f"the Prefect server did not answer as it should: {type(error).__name__}: {error}"
        return Failure(stage="server", item="Prefect", message=text)
    else:
        stage, item = "start", request.playbook
    return Failure(stage=stage, item=item, message=str(error) or type(error).__name__)


def _is_of_server(error: BaseException) -> bool:
    """Whether it is an error of HTTP as such: those of models and stores are ours by the time that a run sees them."""
    return any(kind.__module__.partition(".")[0] == "httpx" for kind in type(error).__mro__)


def status_of(error: BaseException | None) -> Status:
    """How a run or an attempt at it ended that an error or a signal ended, or none."""
    if error is None:
        return "done"
    if isinstance(error, BudgetSpent):
        return "budget"
    is_failure = isinstance(error, Exception) and not isinstance(error, RunStopped | ModelAway)
    return "failed" if is_failure else "stopped"


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


def with_backlog(night: RunResult, again: RunResult) -> RunResult:
    """A night's result after its backlog was tried again: where the playbook stands now, and what all of it took.

    It has the status `budget` where a cap has ended either.
    """
    counts = again.accounting
    settled, left = counts.learned + counts.nothing, counts.total - counts.learned - counts.nothing
    note = f"backlog: {counts.total} tried again, {settled} settled, {left} left in it"
    calls = {stage: night.model_calls.get(stage, 0) + number for stage, number in again.model_calls.items()}
    is_cut = again.status == "budget"
    return night.model_copy(
        update={
            "version": again.version,
            "digest": again.digest,
            "status": again.status if is_cut else night.status,
            "note": _joined(night.note, note, again.note if is_cut else ""),
            "model_calls": calls,
            "tokens": together((night.tokens, again.tokens)),
            "cost": together((night.cost, again.cost)),
        }
    )


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _barren(plan: Plan, counts: Accounting, fates: Iterable[TraceFate]) -> Failure | None:
    """What is wrong with a run that learned from none of its traces. That they had nothing to teach is no fault."""
    lost = counts.refused + counts.failed + counts.deferred
    if counts.learned or lost <= counts.nothing:
        return None
    first = next(fate for fate in fates if fate.fate in ("refused", "failed", "deferred"))
    how = ", ".join(f"{n} {fate}" for fate in ("refused", "failed", "deferred") if (n := getattr(counts, fate)))
    message = (
        f"nothing was learned: of {counts.total} traces {how}; the first, {first.trace_id}: {first.reason}. "
        f"They wait in the backlog: combee backlog list --playbook {plan.request.playbook} --store {plan.request.store}"
    )
    return Failure(stage="learn", item=first.trace_id, message=message)


def _note(plan: Plan, made: Tally, counts: Accounting) -> str:
    day = f" for {plan.request.source.day}" if plan.request.source.day else ""
    if not plan.items:
        skipped = sum(bool(unread.trace_id) for unread in plan.unread)
        return f"no usable traces{day}: all {skipped} were skipped" if skipped else f"no traces{day}"
    if counts.nothing and not counts.learned:
        return f"none of {counts.total} traces{day} taught anything"
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
