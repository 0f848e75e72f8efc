"""`--dry-run`: days, traces, calls, tokens, cost and time to expect, in place of learning."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from combee_core.adapters.ahead import Ahead
    from combee_core.config import DateRange, Nights, RunRequest
    from combee_core.estimate import Estimate
    from combee_core.outlook import DayEstimate, DayWork, Outlook

_HEAD = ("day", "traces", "batches", "rollout", "reflect", "curate", "merge", "tokens in", "out", "US $", "hours", "")


def of_input(request: RunRequest, *, as_json: bool) -> int:
    """Print what `combee learn` would do with all of its input; the exit code.

    Like the others here it asks no model, writes nothing and needs no server.
    """
    from combee_core.adapters.ahead import Ahead
    from combee_core.adapters.inputs import load_input

    ahead = Ahead(request)
    return _show(ahead, [ahead.work(load_input(request.source))], as_json=as_json)


def of_night(request: RunRequest, nights: Nights, *, as_json: bool) -> int:
    """Print what `combee nightly` would do if it started now: missed days with something to learn, then its own, then
    what waits in the backlog.
    """
    from datetime import UTC, datetime

    from combee_core.adapters.ahead import Ahead
    from combee_core.adapters.inputs import load_days
    from combee_core.nights import night_days

    night, ahead = night_days(request.source, nights, datetime.now(UTC)), Ahead(request)
    found = load_days(request.source, night.days[0], night.days[-1])
    works = [ahead.work(found[day], day, again=request.again and day == night.own) for day in night.days]
    shown = [one for one in works if one.loads or one.day == night.own]
    return _show(ahead, [*shown, *_backlog(request, works)], as_json=as_json)


def _backlog(request: RunRequest, days: Sequence[DayWork]) -> Iterator[DayWork]:
    """What a night tries again after these days, but for what they take up themselves."""
    from combee_core import backlog
    from combee_core.adapters.ahead import Ahead
    from combee_core.adapters.inputs import load_input
    from combee_core.adapters.stores import open_store

    store, taken = open_store(request.store), {item for day in days for item in day.items}
    waiting = backlog.due(store, request.playbook, taken=taken)
    if waiting:
        again = backlog.request_of(request, waiting)
        work = Ahead(again).work(load_input(again.source))
        note = "; ".join(filter(None, ("tried again", work.note)))
        yield work.model_copy(update={"day": "backlog", "batching": "", "note": note})


def of_days(request: RunRequest, days: DateRange, *, force: bool, independent: bool, as_json: bool) -> int:
    """Print what `combee backfill` would do, day by day."""
    from combee_core.adapters.ahead import Ahead
    from combee_core.adapters.inputs import load_days
    from combee_core.adapters.stores import open_store
    from combee_core.nights import undertaking_name

    store, ahead = open_store(request.store), Ahead(request)
    attempt = undertaking_name(store, request, days, force=True, independent=independent) if force else ""
    found = load_days(request.source, days.first, days.last)
    works = [ahead.work(found[day], day, attempt=attempt) for day in days.days]
    return _show(ahead, works, independent=independent, as_json=as_json)


def _show(ahead: Ahead, works: Sequence[DayWork], *, independent: bool = False, as_json: bool) -> int:
    from combee_core.assumptions import assumptions, warnings
    from combee_core.outlook import estimate_days

    outlook = estimate_days(works, ahead.basis, independent=independent)
    said = [*assumptions(ahead.basis, outlook.total, whole_prompts=True)]
    warned = [*warnings(outlook.total, ahead.basis)]
    if as_json:
        print(json.dumps(_shown(ahead, outlook, said, warned), ensure_ascii=False))
    else:
        print("\n".join(_lines(ahead, outlook, said, warned)))
    return 0


def _shown(ahead: Ahead, outlook: Outlook, said: list[str], warned: list[str]) -> dict[str, Any]:
    from combee_core.cli.estimates import shown

    days = [
        {**shown(day.estimate), **day.model_dump(mode="json", exclude={"estimate"}), "learns": day.estimate.traces}
        for day in outlook.days
    ]
    request = ahead.request
    head = {"dry_run": True, "estimated": True, "playbook": request.playbook, "version": ahead.version}
    more = {"days": days, "total": shown(outlook.total), "assumptions": said, "warnings": warned}
    return {**head, "model": request.settings.model.model, **more}


def _lines(ahead: Ahead, outlook: Outlook, said: list[str], warned: list[str]) -> Iterator[str]:
    from combee_core.cli.estimates import MARKS, columns, sentences

    request, days = ahead.request, outlook.days
    yield "dry run: no call is made and nothing written; the figures are estimates"
    yield f"playbook {request.playbook}, version {ahead.version}, model {request.settings.model.model}"
    yield ""
    rows = [_row(str(day.day or "all"), day.traces, day.estimate, _note(day)) for day in days]
    if len(days) > 1:
        name = "together" if days[-1].day == "backlog" else f"{len(days)} days"
        rows.append(_row(name, sum(day.traces for day in days), outlook.total, ""))
    yield from columns(_HEAD, rows)
    yield ""
    batching = dict.fromkeys(day.batching for day in days if day.batching)
    yield from sentences((MARKS, *batching, *said, *warned))


def _note(day: DayEstimate) -> str:
    left_out = f"{day.left_out:,} left out" if day.left_out else ""
    return "; ".join(filter(None, (day.note, left_out)))


def _row(name: str, traces: int, cost: Estimate, note: str) -> list[str]:
    from combee_core.cli.estimates import CALLS, calls, hours, money

    if not cost.batches:
        return [name, f"{traces:,}", *["-"] * (len(_HEAD) - 3), note]
    tokens = (f"{cost.input_tokens:,}", f"{cost.output_tokens:,}")
    return [name, f"{traces:,}", f"{cost.batches:,}", *calls(cost, CALLS), *tokens, money(cost.cost), hours(cost), note]
