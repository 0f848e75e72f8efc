"""The days of a night or a backfill: which they are, what there is to learn of each, the marker that says it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime

from prefect import get_run_logger
from prefect.runtime import flow_run

from combee_core import nights
from combee_core.adapters.stores import open_store
from combee_core.base import is_simulated
from combee_core.config import STAGES, DateRange, Nights, RunRequest
from combee_core.day_runs import Choice, DayInput, choose, leave_mark, outlook
from combee_core.days import is_over
from combee_core.errors import BudgetSpent, CombeeError, ModelUseless, RunError, RunHeld, RunStopped, UsageError
from combee_core.events import event, some
from combee_core.learners import load_learner
from combee_core.nights import Night, day_result, night_days, night_of, note_day, noted_days, summed
from combee_core.outcome import replayed, status_of, with_note
from combee_core.publish import refuse_mixing
from combee_core.records import DayResult, Happened, RunResult
from combee_core.runs import Run, run_of
from combee_core.versions import Versions
from tasks import report
from tasks.entry import broken_off, prompts_of
from tasks.reading import forget_input, read_days
from tasks.top import top_id


class Agenda:
    """A flow run's days, in order. Each is looked at when its turn has come, on what those before it have published."""

    def __init__(self, request: RunRequest, night: Night) -> None:
        forget_input()
        self._request, self._night = request, night
        self._store = open_store(request.store)
        self._versions = Versions(self._store, request.playbook)
        self._noted = {line.day: line for line in noted_days(self._store, top_id())}
        self._lines: list[DayResult] = []
        self._results: list[RunResult] = []
        self._unfinished: list[RunResult] = []
        self._put_off: list[CombeeError] = []
        self._ended_at: date | None = None
        self._choices: dict[date, Choice] = {}

    def work(self) -> Iterator[RunRequest]:
        """The request of each day on which there is something to learn, and of a night's own day in any case."""
        refuse_mixing(self._versions.latest(), self._request.settings.model.model)
        for day in self._night.named:
            self._name(day)
        for day in self._night.days:
            if self._ended_at:
                return
            dated = self._dated(day)
            noted = self._noted.get(day)
            if noted and noted.happened not in ("failed", "stopped"):
                self._recall(noted)
                continue
            choice = self._choose(dated)
            if choice.is_work or (day == self._night.own and choice.happened == "no traces"):
                self._choices[day] = choice
                yield dated
            else:
                self._pass(day, choice)

    @contextmanager
    def trying(self, dated: RunRequest) -> Iterator[None]:
        """Name the day in an error. A night puts a failed day off and goes on; everything else stops at it.

        Where what is complete is to be published and something was, the cap of a day in UTC ends the work, well.
        """
        day = _day_of(dated)
        try:
            yield
        except CombeeError as error:
            happened: Happened = "failed" if status_of(error) == "failed" else "stopped"
            self._end(self._broken_off(day, happened, error))
            if self._is_enough(error):
                self._ended_at = day
                return
            if len(self._night.days) > 1:
                error.args = (f"{day}: {error.args[0]}", *error.args[1:])
            if not self._can_wait(error, day):
                report.days(self._request.playbook, self._lines)
                raise
            text = f"{error}; the night goes on with the next day"
            event(get_run_logger(), logging.ERROR, "day-put-off", text, day=day.isoformat())
            self._put_off.append(error)

    def _broken_off(self, day: date, happened: Happened, error: CombeeError) -> DayResult:
        line = DayResult(day=day, happened=happened, traces=self._choices[day].traces, note=str(error))
        run = run_of(self._store, top_id(), day)
        # Who did not get hold of the run has asked nothing; what its owner asks is not ours.
        if run is None or isinstance(error, RunHeld):
            return line.model_copy(update={"run": run.key if run else ""})
        spent = broken_off(run, error)
        self._unfinished.append(spent.model_copy(update={"error": None, "status": "done"}))
        return line.model_copy(update={"run": run.key, "model_calls": sum(spent.model_calls.values())})

    def learned(self, dated: RunRequest, result: RunResult) -> None:
        """Leave the day's mark. An empty day stays open."""
        leave_mark(Run(self._store, result.run), result)
        self._results.append(result)
        self._end(day_result(_day_of(dated), self._choices[_day_of(dated)].happened, result))

    def result(self) -> RunResult:
        """All days that were reached as one result."""
        if self._night.undertaking and not self._ended_at:
            nights.accomplish(self._store, self._night.undertaking)
        report.days(self._request.playbook, self._lines)
        result = self._together()
        if len(self._results) + len(self._unfinished) > 1:
            report.cost(result, f"{self._request.playbook}, all days")
        return result if self._ended_at is None else with_note(result, self._not_reached(self._ended_at), "budget")

    def complete(self, result: RunResult) -> RunResult:
        """The result of all that was done. Raises `RunError` if a day was put off."""
        if self._put_off:
            first, more = self._put_off[0], len(self._put_off) - 1
            others = f" (and {more} more days)" if more else ""
            ended = RunError(f"{first}{others}; the other days were learned, the next night tries again", "night", "")
            ended.told = all(error.told for error in self._put_off)
            raise ended
        return result

    def _together(self) -> RunResult:
        if len(self._results) == 1 and self._night.own and not self._unfinished:
            return self._results[0].model_copy(update={"days": tuple(self._lines)})
        return summed([*self._results, *self._unfinished], self._lines, self._standing())

    def _dated(self, day: date) -> RunRequest:
        source = self._request.source.model_copy(update={"day": day})
        again = self._request.again and day == self._night.own
        return self._request.model_copy(update={"source": source, "again": again})

    def _input(self, dated: RunRequest) -> DayInput:
        days = (*self._night.named, *self._night.days)
        found = read_days(self._request.source, min(days), max(days))[_day_of(dated)]
        return DayInput(dated, found.items, found.unread)

    def _choose(self, dated: RunRequest) -> Choice:
        latest, night = self._versions.latest(), self._night
        base = night.base if night.base is not None else latest.version if latest else 0
        choice = choose(self._store, self._input(dated), base, prompts_of(dated.settings), night.attempt)
        if choice.run and choice.is_work:
            choice.run.note_flow_run(top_id(), _day_of(dated))
        return choice

    def _name(self, day: date) -> None:
        seen = outlook(self._store, self._input(self._dated(day)))
        if seen.is_work:
            self._say(DayResult(day=day, happened="named only", traces=seen.traces))

    def _pass(self, day: date, choice: Choice) -> None:
        """Nothing to do: a day that was learned gives its recorded result."""
        run = choice.run.key if choice.run else ""
        line = DayResult(day=day, happened=choice.happened, traces=choice.traces, version=choice.version, run=run)
        if day == self._night.own:
            self._recall(line)
        elif self._night.own is None:
            self._say(line)

    def _recall(self, line: DayResult) -> None:
        recorded = Run(self._store, line.run).result()
        result = replayed(recorded) if recorded else self._standing()
        if line.day == self._night.own:
            known = f", run {line.run}" if line.run else ""
            report.accounting(result, f"{self._request.playbook}, {line.day}{known}")
        self._results.append(result)
        self._say(line.model_copy(update={"model_calls": 0}))

    def _end(self, line: DayResult) -> None:
        note_day(self._store, top_id(), line)
        self._say(line)

    def _say(self, line: DayResult) -> None:
        self._lines.append(line)
        what = {"day": line.day.isoformat(), "happened": line.happened, "traces": line.traces}
        event(get_run_logger(), logging.INFO, "day", told(line), **what)

    def _is_enough(self, error: CombeeError) -> bool:
        """Whether a cap that holds for all days ends the work with something published."""
        of_all = isinstance(error, BudgetSpent) and not error.is_of_a_run
        published = any(line.happened in ("learned", "supplement") for line in self._lines)
        return of_all and published and self._request.settings.on_budget == "publish"

    def _not_reached(self, first: date) -> str:
        days = some([day.isoformat() for day in self._night.days if day >= first])
        return (
            f"not reached: {', '.join(days)}: a cap of all runs of a day in UTC; go on with a higher one, or tomorrow"
        )

    def _can_wait(self, error: CombeeError, day: date) -> bool:
        stopped = isinstance(error, RunHeld | RunStopped) and not (isinstance(error, BudgetSpent) and error.is_of_a_run)
        # A model that is dead is so for every day; one whose answers are useless may do better on another day's traces.
        may_pass = isinstance(error, RunError | ModelUseless) and not stopped
        return may_pass and self._night.own not in (None, day)

    def _standing(self) -> RunResult:
        """Where the playbook stands by now."""
        latest, settings = self._versions.latest(), self._request.settings
        last = self._results[-1] if self._results else None
        learner = load_learner(settings.learner, settings.prompts)
        return RunResult(
            playbook=self._request.playbook,
            version=latest.version if latest else 0,
            digest=latest.digest if latest else learner.digest(learner.empty()),
            flow_run_id=top_id(),
            run=last.run if last else "",
            note=last.note if last else "nothing new",
            simulated=is_simulated(settings.model.model),
            model_calls=dict.fromkeys(STAGES, 0),
        )


def told(line: DayResult) -> str:
    """A day as a line of the log."""
    version = f", version {line.version}" if line.version else ""
    calls = f", {line.model_calls} model calls" if line.model_calls else ""
    note = f" ({line.note})" if line.note and line.traces else ""
    return f"{line.day}: {line.happened}: {line.traces} traces{version}{calls}{note}"


def of_night(request: RunRequest, nights: Nights) -> Agenda:
    """The day that the request names; without one the local day before the scheduled start, and the days before it.

    Raises `UsageError` for a day in the future and an unknown time zone.
    """
    if request.source.day:
        _must_have_begun(request.source.day, request.source.timezone)
    start = flow_run.scheduled_start_time or datetime.now(UTC)
    store = open_store(request.store)
    return Agenda(request, night_of(store, top_id(), lambda: night_days(request.source, nights, start)))


def of_backfill(request: RunRequest, days: DateRange, *, force: bool, independent: bool) -> Agenda:
    """Every day of the range. Raises `UsageError` for days that have not begun and an unknown time zone."""
    if request.source.day:
        raise UsageError("a backfill is of a range of days; leave the source's own day empty")
    _must_have_begun(days.last, request.source.timezone)
    store = open_store(request.store)

    def chosen() -> Night:
        if not (force or independent):
            return Night(days=days.days)
        latest = Versions(store, request.playbook).latest()
        base = (latest.version if latest else 0) if independent else None
        found = nights.undertake(store, request, days, force=force, base=base)
        attempt = found.name if force else ""
        return Night(days=days.days, base=found.base, attempt=attempt, undertaking=found.name)

    return Agenda(request, night_of(store, top_id(), chosen))


def _must_have_begun(day: date, timezone: str) -> None:
    """Raises `UsageError` for a day that has not; one that is not over is warned of."""
    if not is_over(day, timezone, datetime.now(UTC)):
        text = f"{day} is not over in {timezone}: later traces will be missing"
        event(get_run_logger(), logging.WARNING, "day-not-over", text, day=day.isoformat())


def _day_of(dated: RunRequest) -> date:
    if dated.source.day is None:
        raise ValueError("a day's request names its day")
    return dated.source.day
