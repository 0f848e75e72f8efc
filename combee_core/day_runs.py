"""What there is to learn of one day: found out from its marker, planned as the next run of that day."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from combee_core.config import RunRequest
from combee_core.errors import StoreError
from combee_core.markers import DayMarker, mark, marker_of, news
from combee_core.ports import Store
from combee_core.records import Happened, Item, Plan, RunResult
from combee_core.runs import Run, begin, generations
from combee_core.types import Unread


@dataclass(frozen=True)
class Choice:
    """What a day needs: `run` is the one to go on with, or the last one of a day that is learned already."""

    happened: Happened
    run: Run | None = None
    traces: int = 0
    version: int | None = None

    @property
    def is_work(self) -> bool:
        """True where there is something to learn."""
        return self.happened in ("learned", "supplement")


@dataclass(frozen=True)
class DayInput:
    """A day as its source has it now: the traces, and what could not be read."""

    request: RunRequest
    items: Sequence[Item]
    unread: Sequence[Unread] = ()


def outlook(store: Store, day: DayInput) -> Choice:
    """What would be done about a day, with nothing written. `traces` are those that would be read."""
    marker = marker_of(store, day.request)
    new = news(marker, day.items).items
    if not marker.runs:
        return Choice("learned", traces=len(new)) if new else Choice("no traces")
    if new:
        return Choice("supplement", traces=len(new))
    return _learned(store, marker)


def choose(store: Store, day: DayInput, base: int, prompts: str = "", attempt: str = "") -> Choice:
    """The run that a day needs, planned on version `base` if it is new.

    An unfinished run is gone on with, unless its traces are not there any more as it planned them. Traces that the
    day's marker does not know are planned as a run of their own. With the request's `again`, and in a named `attempt`
    that has not yet done so, the whole day is learned anew.
    """
    anew = day.request.again or bool(attempt)
    seen = outlook(store, day)
    if not day.items or (not seen.is_work and not anew):
        return seen
    marker = marker_of(store, day.request)
    newest, fresh = generations(store, day.request, day.items, prompts, attempt, marker.keys)
    ended = newest.result() if newest else None
    if newest and ended and newest.plan().items and not marker.has(newest.key):
        # It ended just before it could leave its mark.
        leave_mark(newest, ended)
        return choose(store, day, base, prompts, attempt)
    if ended and attempt:
        return _learned(store, marker)
    happened: Happened = "supplement" if marker.runs and not anew else "learned"
    if newest and _goes_on(newest, day, marker, anew):
        return Choice(happened, newest, len(newest.plan().items))
    plan = _next_plan(store, day, marker, anew)
    run = begin(store, plan.model_copy(update={"key": fresh.key, "base_version": base}))
    return Choice(happened, run, len(plan.items))


def leave_mark(run: Run, result: RunResult) -> None:
    """Mark the day of a run that has ended. An empty day stays open; what the run deferred stays to be learned."""
    plan = run.plan()
    if plan.items:
        mark(run.store, plan, result.version, _deferred(result))


def _deferred(result: RunResult) -> set[str]:
    return {fate.trace_id for fate in result.fates if fate.fate == "deferred"}


def foresee(store: Store, day: DayInput, prompts: str = "", attempt: str = "") -> tuple[Choice, tuple[Item, ...]]:
    """What `choose` would choose, and the traces that its run has or would have; nothing is written.

    Where a new run would be planned the choice has none.
    """
    anew = day.request.again or bool(attempt)
    seen = outlook(store, day)
    if not day.items or (not seen.is_work and not anew):
        return seen, ()
    marker = marker_of(store, day.request)
    newest, _ = generations(store, day.request, day.items, prompts, attempt, marker.keys)
    ended = newest.result() if newest else None
    if newest and ended and newest.plan().items:
        marker = marker.after(newest.plan(), ended.version, _deferred(ended))
    if ended and (attempt or not (anew or news(marker, day.items).items)):
        return _learned(store, marker), ()
    happened: Happened = "supplement" if marker.runs and not anew else "learned"
    run = newest if newest and _goes_on(newest, day, marker, anew) else None
    items = run.plan().items if run else _next_plan(store, day, marker, anew).items
    return Choice(happened, run, len(items)), items


def _learned(store: Store, marker: DayMarker) -> Choice:
    last = marker.runs[-1]
    return Choice("already learned", Run(store, last.run), marker.traces, last.version)


def _goes_on(run: Run, day: DayInput, marker: DayMarker, anew: bool) -> bool:
    planned = run.plan().items
    if run.result() is not None or not planned:
        return False
    if anew:
        return planned == tuple(day.items)
    # Another run may have learned all of it meanwhile.
    is_news = bool(news(marker, planned).items)
    return is_news and (set(day.items).issuperset(planned) or run.waits_for_publishing)


def _next_plan(store: Store, day: DayInput, marker: DayMarker, anew: bool) -> Plan:
    new = news(marker, day.items)
    counted = set[Unread]() if anew else _counted(store, marker)
    return Plan(
        key="",
        request=day.request,
        base_version=0,
        items=tuple(day.items) if anew else new.items,
        unread=tuple(unread for unread in day.unread if unread not in counted),
        withdrawn=new.changed,
    )


def _counted(store: Store, marker: DayMarker) -> set[Unread]:
    """What earlier runs of the day have already named as unreadable."""
    found = set[Unread]()
    for one in marker.runs:
        # Its records may have been cleared away: then it is named once more.
        with suppress(StoreError):
            found |= set(Run(store, one.run).plan().unread)
    return found
