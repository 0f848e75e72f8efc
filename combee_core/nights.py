"""The days that one flow run learns, written down before the first of them, and what became of each.

nights/<flow run id>.json · nights/<flow run id>/<day>.json · backfills/<key>/<number>.json and .done
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import count

from combee_core.base import Noun, content_hash
from combee_core.config import STAGES, DateRange, Nights, RunRequest, Source
from combee_core.days import zone
from combee_core.errors import StoreError
from combee_core.ports import Store
from combee_core.records import Accounting, DayResult, RunResult, together


class Night(Noun):
    """Written create-only before anything is read: a rerun goes on with the same days.

    `own` is a night's own day. `base` is the version that every day is learned from, where they are independent;
    `attempt` names a backfill that learns its days anew, `undertaking` its record.
    """

    days: tuple[date, ...]
    own: date | None = None
    named: tuple[date, ...] = ()
    base: int | None = None
    attempt: str = ""
    undertaking: str = ""


def night_days(source: Source, nights: Nights, start: datetime) -> Night:
    """The day that the source names; without one the local day before `start` (aware), and the days before it.

    Raises `UsageError` for an unknown time zone.
    """
    if source.day:
        return Night(days=(source.day,), own=source.day)
    own = start.astimezone(zone(source.timezone)).date() - timedelta(days=1)
    before = tuple(own - timedelta(days=n) for n in range(nights.lookback, 0, -1))
    if nights.missed == "skip":
        return Night(days=(own,), own=own, named=before)
    return Night(days=(*before, own), own=own)


def night_of(store: Store, flow_run_id: str, make: Callable[[], Night]) -> Night:
    """The recorded days of this flow run, or those that `make` gives, recorded now."""
    key = f"nights/{flow_run_id}.json"
    blob = store.read(key)
    if blob is None:
        made = make()
        if store.create(key, made.model_dump_json().encode()):
            return made
        blob = store.read(key)
    if blob is None:
        raise StoreError(f"{store.uri}/{key} was refused as existing and then was not there")
    return Night.model_validate_json(blob.data)


def note_day(store: Store, flow_run_id: str, result: DayResult) -> None:
    """Write down what this flow run did about a day; the newest note stands, since a rerun may do better."""
    key = f"nights/{flow_run_id}/{result.day}.json"
    while True:
        blob = store.read(key)
        if store.replace(key, result.model_dump_json().encode(), blob.tag if blob else None):
            return


def noted_days(store: Store, flow_run_id: str) -> tuple[DayResult, ...]:
    """What this flow run has done so far, day by day."""
    blobs = (store.read(key) for key in store.list(f"nights/{flow_run_id}/"))
    return tuple(DayResult.model_validate_json(blob.data) for blob in blobs if blob)


class Undertaking(Noun):
    """A backfill that must be told apart from the same one made again: it learns anew, or from one version."""

    name: str
    base: int | None = None


def undertake(store: Store, request: RunRequest, days: DateRange, *, force: bool, base: int | None) -> Undertaking:
    """The undertaking of this backfill that has not ended, so that the same command goes on with it; else a new one."""
    name = undertaking_name(store, request, days, force=force, independent=base is not None)
    fresh = Undertaking(name=name, base=base)
    store.create(f"{name}.json", fresh.model_dump_json().encode())
    blob = store.read(f"{name}.json")
    if blob is None:
        raise StoreError(f"{store.uri}/{name}.json was refused as existing and then was not there")
    return Undertaking.model_validate_json(blob.data)


def undertaking_name(store: Store, request: RunRequest, days: DateRange, *, force: bool, independent: bool) -> str:
    """The name of the undertaking that `undertake` would go on with or begin. Writes nothing."""
    source, settings = request.source, request.settings.identity()
    what = [request.playbook, sorted(source.uris), source.timezone, str(days.first), str(days.last), settings]
    key = f"backfills/{content_hash('backfill', *what, force, independent)[:16]}"
    names = (f"{key}/{number:04d}" for number in count(1))
    return next(name for name in names if store.read(f"{name}.done") is None)


def accomplish(store: Store, name: str) -> None:
    """Note that an undertaking has ended: the same command makes a new one."""
    store.create(f"{name}.done", b"{}")


def day_result(day: date, happened: str, result: RunResult) -> DayResult:
    """A run's outcome as the line of its day."""
    return DayResult.model_validate(
        {
            "day": day,
            "happened": happened if result.accounting.total else "no traces",
            "traces": result.accounting.total,
            "version": result.version,
            "run": result.run,
            "model_calls": sum(result.model_calls.values()),
            "note": result.note,
        }
    )


def summed(results: Sequence[RunResult], days: Sequence[DayResult], last: RunResult) -> RunResult:
    """The results of several days as one. `last` says where the playbook stands; only unsettled fates are kept."""
    calls = Counter(dict.fromkeys(STAGES, 0))
    for result in results:
        calls.update(result.model_calls)
    counts = Counter[str]()
    for result in results:
        counts.update(result.accounting.model_dump())
    cut = dict.fromkeys(result.note for result in results if result.status == "budget")
    error = next((result.error for result in results if result.error), None)
    return last.model_copy(
        update={
            "simulated": any(result.simulated for result in (*results, last)),
            "accounting": Accounting.model_validate(counts),
            "model_calls": dict(calls),
            "tokens": together(result.tokens for result in results),
            "cost": together(result.cost for result in results),
            "fates": tuple(fate for result in results for fate in result.fates if not fate.is_settled),
            "left_out": tuple(dict.fromkeys(file for result in results for file in result.left_out)),
            "days": tuple(days),
            "error": error,
            "status": "budget" if cut else "failed" if error else last.status,
            "note": "; ".join(cut) or last.note,
            "groups": (),
            "calls": 0,
            "sizing": None,
            "survival": (),
        }
    )
