"""What a store knows of its runs: when each was last attempted, and how that ended. Newest first, and quick.

history/<playbook>/<moment>-<run>   an empty mark for each attempt, in the order of time
runs/<run>/attempt.json             the last attempt at the run, and its end once it has one
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from combee_core.base import Noun
from combee_core.ports import Store
from combee_core.records import Failure, Plan
from combee_core.runs import Run
from combee_core.saving import read_record, write_record

Status = Literal["done", "barren", "failed", "stopped", "budget"]
"""How an attempt ended; barren is done without having learned, since traces were refused or failed. One without an end
is running, or dead where no live process holds its run."""

_READERS = 16
_MOMENT = "%Y%m%dT%H%M%S%f"


class Ended(Noun):
    """The end of an attempt: of `planned` batches `done` have a state; `failure` says what failed."""

    at: datetime
    status: Status
    done: int = 0
    planned: int = 0
    failure: Failure | None = None


class Attempt(Noun):
    """One process's work on a run, by the flow run that a person sees. `what` is the day, else the input's places."""

    run: str
    playbook: str
    what: str
    traces: int
    flow_run_id: str
    invocation: str
    began: datetime
    ended: Ended | None = None


class Seen(Noun):
    """A run as it is listed. `batches_planned` is 0 while the batch size is not known."""

    run: str
    state: str
    playbook: str
    what: str
    traces: int
    batches_done: int
    batches_planned: int
    began: datetime | None = None
    ended: datetime | None = None
    failure: Failure | None = None
    flow_run_id: str = ""


def begin(run: Run, plan: Plan, flow_run_id: str, invocation: str, now: datetime) -> Attempt:
    """Record that an attempt begins. Call it while holding the run: the one before is then over."""
    began = Attempt(
        run=run.key,
        playbook=plan.request.playbook,
        what=what_of(plan),
        traces=len(plan.items),
        flow_run_id=flow_run_id,
        invocation=invocation,
        began=now,
    )
    _put(run, began)
    moment = now.astimezone(UTC).strftime(_MOMENT)
    run.store.create(f"history/{plan.request.playbook}/{moment}-{run.key}", b"")
    return began


def end(run: Run, attempt: Attempt, status: Status, now: datetime, failure: Failure | None = None) -> None:
    """Record how the attempt ended."""
    sizing = run.sizing()
    ended = Ended(at=now, status=status, done=run.done, planned=sizing.count if sizing else 0, failure=failure)
    _put(run, attempt.model_copy(update={"ended": ended}))


def last_attempt(run: Run) -> Attempt | None:
    """The last attempt at a run, None before the first."""
    blob = run.store.read(run.path("attempt.json"))
    return read_record(Attempt, blob.data) if blob else None


def recent(store: Store, playbook: str | None = None, limit: int | None = None) -> list[Seen]:
    """The runs of a store, or of one playbook, by their last attempt, newest first; at most `limit`."""
    keys = _newest(store.list(f"history/{playbook}/" if playbook else "history/"))
    parts = iter(lambda: tuple(islice(keys, limit or None)), ())
    with ThreadPoolExecutor(_READERS) as pool:
        found = (seen for part in parts for seen in pool.map(lambda key: look(Run(store, key)), part) if seen)
        return list(islice(found, limit))


def look(run: Run) -> Seen | None:
    """How a run stands; None for one that was never attempted."""
    attempt = last_attempt(run)
    if attempt and attempt.ended is None and run.store.holder(run.path("owner")) is None:
        # It may have ended between the two looks.
        attempt, dead = last_attempt(run) or attempt, True
    else:
        dead = False
    return _seen(run, attempt, dead) if attempt else None


def what_of(plan: Plan) -> str:
    """A run's input in a few words."""
    source = plan.request.source
    if source.kind == "backlog":
        return "backlog"
    return str(source.day) if source.day else ", ".join(source.uris)


def _seen(run: Run, attempt: Attempt, dead: bool) -> Seen:
    ended, sizing = attempt.ended, None if attempt.ended else run.sizing()
    return Seen(
        state=ended.status if ended else "dead" if dead else "running",
        batches_done=ended.done if ended else run.done,
        batches_planned=ended.planned if ended else sizing.count if sizing else 0,
        ended=ended.at if ended else None,
        failure=ended.failure if ended else None,
        **attempt.model_dump(include={"run", "playbook", "what", "traces", "flow_run_id", "began"}),
    )


def _newest(keys: Sequence[str]) -> Iterator[str]:
    """Each run once, by its newest mark."""
    marks = sorted((key.rpartition("/")[2] for key in keys), reverse=True)
    return iter(dict.fromkeys(mark.partition("-")[2] for mark in marks))


def _put(run: Run, attempt: Attempt) -> None:
    path, data = run.path("attempt.json"), write_record(attempt)
    while True:
        blob = run.store.read(path)
        if run.store.replace(path, data, blob.tag if blob else None):
            return
