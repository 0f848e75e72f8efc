"""What a top flow does before and after its batches: find the plan, hold it, publish, record the result."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import cast

from prefect import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from combee_core import backlog, history, outcome
from combee_core.adapters.standings import standing_of, with_caps
from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, Workshop, calls, open_workshop
from combee_core.base import Noun
from combee_core.config import RunRequest, RunSettings
from combee_core.errors import BudgetSpent, CombeeError, RunError, mark_told
from combee_core.events import event
from combee_core.history import Attempt
from combee_core.learners import load_learner
from combee_core.outcome import NothingLearned
from combee_core.publish import publish, refuse_mixing
from combee_core.records import Cut, RunResult
from combee_core.resuming import explanation
from combee_core.runs import Run, find_or_plan, part_of, run_of
from combee_core.versions import Versions
from tasks import alarms, crashed, report, sizing
from tasks.children import without_heartbeats
from tasks.preflight import preflight, probe
from tasks.reading import forget_input, read_input
from tasks.results import register
from tasks.top import is_top, top_id


class Opened(Noun):
    """A run that is ready to be worked on."""

    place: Place
    results: str
    done: bool = False


def invocation() -> str:
    """Id of this attempt at a run: of the flow run that works on it, and how often it was started."""
    return f"{flow_run.id}-{flow_run.run_count}"


def open_run(request: RunRequest) -> Opened:
    """Find this request's run or plan it, and remember which flow run works on it.

    A flow run that was rerun goes on with the plan that it had, whatever the source holds now.
    """
    if is_top():
        forget_input()
    store = open_store(request.store)
    probe(store)
    results = register(store.uri)
    part = part_of(request.source)
    run = run_of(store, top_id(), part) or _plan(request)
    run.note_flow_run(top_id(), part)
    place = Place(store=store.uri, run=run.key, invocation=invocation())
    if run.result() is not None:
        return Opened(place=place, results=results, done=True)
    run.adopt(request.settings)
    return Opened(place=place, results=results)


def _plan(request: RunRequest) -> Run:
    store = open_store(request.store)
    latest = Versions(store, request.playbook).latest()
    refuse_mixing(latest, request.settings.model.model)
    found, base = read_input(request.source), latest.version if latest else 0
    return find_or_plan(store, request, found.items, found.unread, base, prompts_of(request.settings))


def prompts_of(settings: RunSettings) -> str:
    """What stands for prompt files that replace the learner's own, in a run's key."""
    return load_learner(settings.learner, settings.prompts).fingerprint if settings.prompts else ""


@contextmanager
def held(opened: Opened) -> Iterator[Workshop]:
    """Hold the run; on an error record what became of its traces and raise it as it is.

    Raises `RunHeld` naming the run's live owner.
    """
    shop = open_workshop(opened.place)
    with ExitStack() as stack:
        stack.enter_context(without_heartbeats())
        stack.enter_context(shop.store.lease(shop.run.path("owner"), f"flow run {top_id()}"))
        crashed.mark_others(shop, top_id())
        shop.client.begin(shop.run.key, opened.place.invocation)
        _say_started(shop)
        attempt = history.begin(shop.run, shop.plan, top_id(), opened.place.invocation, datetime.now(UTC))
        try:
            if shop.plan.items:
                preflight(shop)
            yield shop
            _note_result(shop, attempt)
        except BaseException as error:
            _note_end(shop, attempt, error)
            if isinstance(error, CombeeError):
                _note_failure(shop, error)
            raise
        finally:
            calls(shop.client.settle())


def broken_off(run: Run, error: CombeeError) -> RunResult:
    """What became of the traces of a run that this process had hold of until the error, and what it has spent."""
    return failed_result(open_workshop(Place(store=run.store.uri, run=run.key)), error)


def _say_started(shop: Workshop) -> None:
    if history.last_attempt(shop.run):
        _say_going_on(shop)
    plan, done = shop.plan, shop.run.done
    what = {"playbook": plan.request.playbook, "model": shop.client.model.name, "base_version": plan.base_version}
    text = f"{plan.request.playbook}: {len(plan.items)} traces or samples, {done} batches done before"
    event(get_run_logger(), logging.INFO, "run-started", text, run=plan.key, items=len(plan.items), done=done, **what)


def _say_going_on(shop: Workshop) -> None:
    """Tell what is saved and what is left: a Retry in the UI and the same command explain nothing beforehand."""
    standing = with_caps(standing_of(shop.run), shop.run, shop.settings, datetime.now(UTC).date())
    text = "; ".join(line.strip() for line in list(explanation(standing))[1:])
    event(get_run_logger(), logging.INFO, "goes-on", f"goes on; {text}", run=shop.run.key)


def _note_result(shop: Workshop, attempt: Attempt) -> None:
    result = shop.run.result()
    error, status = (result.error, result.status) if result else (None, "done")
    # A run that has a result and yet failed is one that learned nothing.
    ended: history.Status = "barren" if status == "failed" else status
    history.end(shop.run, attempt, ended, datetime.now(UTC), error)


def _note_end(shop: Workshop, attempt: Attempt, error: BaseException) -> None:
    """Record that the attempt failed or was stopped; trouble with that must not hide the error itself."""
    try:
        # A signal has nothing to say about where the run was.
        failure = outcome.failure_of(error, shop.plan.request) if isinstance(error, Exception) else None
        history.end(shop.run, attempt, outcome.status_of(error), datetime.now(UTC), failure)
    except CombeeError as trouble:
        text = f"the end of this attempt could not be recorded: {trouble}"
        event(get_run_logger(), logging.WARNING, "end-unrecorded", text, run=shop.run.key)


def _note_failure(shop: Workshop, error: CombeeError) -> None:
    """File and show what became of the traces; trouble with that must not hide the error itself."""
    try:
        result = failed_result(shop, error).model_copy(update={"flow_run_id": top_id()})
        alarms.sound(result, shop.settings.alarms)
        mark_told(error)
        if not backlog.is_backlog(shop.plan.request):
            backlog.file(shop.store, shop.plan, result.fates)
        report.accounting(result, report.about(shop.plan))
    except CombeeError as trouble:
        event(get_run_logger(), logging.WARNING, "failure-unfiled", f"the failure could not be filed: {trouble}")


def failed_result(shop: Workshop, error: BaseException) -> RunResult:
    """The result of a run that ended in `error`."""
    failure = outcome.failure_of(error, shop.plan.request)
    result = outcome.failed(shop.plan, shop.run.states(), failure, shop.client.ledger)
    return result.model_copy(update={"status": outcome.status_of(error)})


@contextmanager
def within_budget(shop: Workshop) -> Iterator[None]:
    """Work on batches inside. With `on_budget="publish"` a cap ends the run here, with the batches that are complete,
    and of the last one the groups that are.

    Raises `BudgetSpent` where nothing is to be published, or nothing is complete: then the run can be gone on with.
    """
    try:
        yield
    except BudgetSpent as spent:
        complete = shop.run.done
        if shop.run.broken_off() is None:
            if shop.settings.on_budget == "hold" or not complete:
                spent.held = complete
                raise
            shop.run.end_early(Cut(batches=complete, reason=spent.facts))
        text = f"{spent.facts}; what is complete is published"
        event(get_run_logger(), logging.WARNING, "budget", text, run=shop.run.key, batches=complete)


def finish(shop: Workshop) -> RunResult:
    """Publish, record the result, say what changed. Raises `RunError` if a batch has left no state."""
    calls(shop.client.settle())
    states, planned, cut = shop.run.states(), sizing.current(shop), shop.run.cut()
    expected = shop.run.expected
    if len(states) != expected:
        raise RunError(f"{len(states)} of {expected} batches have a state; run again", "publish")
    version, set_aside = publish(shop.plan, states, shop.versions, shop.learner, flow_run_id=top_id())
    empty = shop.learner.digest(shop.learner.empty())
    result = outcome.finished(shop.plan, states, version, empty, set_aside, shop.client.ledger)
    result = outcome.cut_short(result, cut) if cut else result
    is_retry = backlog.is_backlog(shop.plan.request) and not is_top()
    result = outcome.tried_again(result) if is_retry else result
    result = result.model_copy(update={"flow_run_id": top_id(), "sizing": planned})
    backlog.file(shop.store, shop.plan, result.fates)
    recorded = shop.run.finish(result)
    report.finished(shop, recorded, states)
    _say_finished(recorded)
    alarms.sound(recorded, shop.settings.alarms, again=is_retry)
    sizing.compare(shop)
    return recorded


def _say_finished(result: RunResult) -> None:
    figures = {"traces": result.accounting.model_dump(), "cost": result.cost.total, "tokens": result.tokens.total}
    what = {"run": result.run, "playbook": result.playbook, "version": result.version}
    text = f"{result.playbook}: version {result.version}, {result.accounting.learned} traces learned"
    event(get_run_logger(), logging.INFO, "run-finished", text, **what, **figures)


def ended(result: RunResult) -> RunResult:
    """A flow's result; where a cap cut the run short, in a state that says so where people look."""
    if result.status != "budget":
        return result
    return cast(RunResult, Completed(name="Budget", message=result.note, data=result))


def recorded(opened: Opened) -> RunResult:
    """The result of a finished run, with nothing asked and nothing spent; shown as any run's."""
    shop = open_workshop(opened.place)
    result = shop.run.result()
    if result is None:
        raise RunError(f"run {opened.place.run} has no result yet")
    replayed = outcome.replayed(result)
    report.accounting(replayed, report.about(shop.plan))
    return replayed


def loud(result: RunResult) -> RunResult:
    """The result. Raises `NothingLearned` for a run that learned nothing since its traces were refused or failed.

    Only the flow run on top is failed by it: a night still has its day to mark and its backlog to look at.
    """
    if result.error and is_top():
        raise NothingLearned(result)
    return result
