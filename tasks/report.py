"""Artifacts: what people look at in the UI after a night."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from combee_core import summary
from combee_core.adapters.pictures import fit_picture
from combee_core.adapters.workshop import Workshop
from combee_core.charts import FIT_COLUMNS, fit_table
from combee_core.diff import diff
from combee_core.errors import UsageError
from combee_core.events import event
from combee_core.history import what_of
from combee_core.playbook import Playbook
from combee_core.records import DayResult, Plan, RunResult, State
from combee_core.sizes import Decision
from combee_core.tally import tally

ROWS = 200
"""Of a table in the UI, which is slow with thousands and dies of a hundred thousand."""


def finished(shop: Workshop, result: RunResult, states: Sequence[State]) -> None:
    """The summary of what changed and why, the accounting, the cost."""
    before, after = shop.state_before(1), shop.versions.latest()
    state = shop.learner.load(after.state) if after else shop.learner.empty()
    if isinstance(before, Playbook) and isinstance(state, Playbook):
        text = summary.what_changed(result, diff(before, state), tally(states))
        described = f"{about(shop.plan)}: what was learned, and from what"
        create_markdown_artifact(markdown=text, key="playbook-changes", description=described)
    accounting(result, about(shop.plan))


def about(plan: Plan) -> str:
    """What an artifact is about, as `combee runs` names it: artifacts of all playbooks share their keys."""
    return f"{plan.request.playbook}, {what_of(plan)}, run {plan.key}"


def accounting(result: RunResult, what: str) -> None:
    """What became of every trace, and what was spent; `what` says of which run."""
    table = summary.accounting(result)
    create_table_artifact(table=table, key="accounting", description=f"{what}: the fate of every trace")
    rest = unlearned(result)
    if rest:
        described = f"{what}: what was not learned from, and why"
        create_table_artifact(table=rest, key="not-learned", description=described)
    cost(result, what)


def cost(result: RunResult, what: str) -> None:
    """What was asked and spent."""
    described = f"{what}: model calls, tokens, money"
    create_markdown_artifact(markdown=summary.spent(result), key="cost", description=described)


def unlearned(result: RunResult, most: int = ROWS) -> list[dict[str, object]]:
    """What was not learned from: the first `most` rows, then one that says how many more there are, and where."""
    rows = summary.unlearned(result)
    if len(rows) <= most:
        return rows
    where = f"backlog/{result.playbook}/ of the store, and what was skipped in runs/{result.run}/plan.json"
    return [*rows[:most], {"trace": f"… and {len(rows) - most:,} more", "fate": "", "why": f"all of them: {where}"}]


def days(playbook: str, lines: Sequence[DayResult]) -> None:
    """What became of each day of a night or a backfill."""
    rows = day_rows(lines)
    create_table_artifact(table=rows, key="days", description=days_told(playbook, lines, len(rows)))


def days_told(playbook: str, lines: Sequence[DayResult], shown: int) -> str:
    """All days in one sentence."""
    number = "1 day" if len(lines) == 1 else f"{len(lines):,} days"
    traces, calls = sum(line.traces for line in lines), sum(line.model_calls for line in lines)
    rest = "" if shown == len(lines) else f"; {shown} of them are shown"
    return f"{playbook}: {number}, {traces:,} traces, {calls:,} model calls{rest}"


def day_rows(lines: Sequence[DayResult], most: int = ROWS) -> list[dict[str, object]]:
    """A row a day; of a long list the last `most` days on which something happened."""
    idle = ("already learned", "no traces") if len(lines) > most else ()
    return [_day_row(line) for line in lines if line.happened not in idle][-most:]


def _day_row(line: DayResult) -> dict[str, object]:
    return {
        "day": str(line.day),
        "what happened": line.happened,
        "traces": line.traces,
        "model calls": line.model_calls,
        "version": line.version,
        "run": line.run,
        "note": line.note,
    }


def fit(decision: Decision) -> None:
    """How the batch size was chosen: the measurements as a table, the curve as a picture."""
    create_table_artifact(table=fit_table(decision), key="batch-size", description=f"{decision.reason}. {FIT_COLUMNS}")
    try:
        encoded = b64encode(fit_picture(decision, "svg")).decode()
    except UsageError as error:
        event(get_run_logger(), logging.WARNING, "no-picture", f"no picture of the batch size: {error}")
        return
    # Of the ways to show a picture the UI draws this one: inline SVG stays blank, and a link leads to its own machine.
    picture = f"{summary.cell(decision.reason)}\n\n![batch size](data:image/svg+xml;base64,{encoded})\n"
    create_markdown_artifact(markdown=picture, key="batch-size-curve", description="Epoch time over the batch size")


class Progress:
    """The share of batches that are done, as a progress artifact of the flow run."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._artifact: UUID | None = None

    def show(self, done: int) -> None:
        """Say that so many batches are done; nothing is shown for a run without batches."""
        if not self._batches:
            return
        percent, text = 100 * done / self._batches, f"{done} of {self._batches} batches"
        if self._artifact is None:
            self._artifact = _created(create_progress_artifact(percent, key="progress", description=text))
        else:
            update_progress_artifact(self._artifact, percent, description=text)


def _created(artifact: object) -> UUID:
    return UUID(str(artifact))
