"""What somebody should look at in the morning: a run's result held against bars. Each alarm is one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from pydantic import Field

from combee_core.base import Noun, clip
from combee_core.config import AlarmBars
from combee_core.records import RunResult
from combee_core.summary import amount, cell

AlarmKind = Literal["failed", "budget", "no-traces", "nothing-learned", "little-learned", "survival", "cost"]
Severity = Literal["warning", "error"]

_LONGEST = 500
"""Characters of an error's message in an alarm."""

_FEWEST = 5
"""Insights below which a share of them says nothing."""


class Alarm(Noun):
    """One thing to look at. `figures` are those of its sentence, for programs."""

    kind: AlarmKind
    severity: Severity
    message: str
    figures: dict[str, float | int | str | None] = Field(default_factory=dict)


def alarms_of(result: RunResult, bars: AlarmBars, *, again: bool = False) -> tuple[Alarm, ...]:
    """What in this result is beyond its bars, gravest first. `again` where its traces were told of before."""
    ended = _budget(result) if result.status == "budget" else _failed(result)
    return (*ended, *(alarm for check in _checks(result, again) for alarm in check(result, bars)))


def _checks(result: RunResult, again: bool) -> tuple[Callable[[RunResult, AlarmBars], Iterator[Alarm]], ...]:
    if result.error:
        return (_cost,)
    if again or result.status == "budget":
        # What a cap deferred was not read badly: it was not read.
        return (_survival, _cost)
    return (_no_traces, _nothing_learned, _little_learned, _survival, _cost)


def as_payload(alarm: Alarm, result: RunResult) -> dict[str, Any]:
    """The alarm with what it is about, as it is sent to others."""
    about = {"playbook": result.playbook, "run": result.run, "flow_run_id": result.flow_run_id}
    return {**alarm.model_dump(mode="json"), **about}


def as_list(alarms: Iterable[Alarm]) -> str:
    """Alarms in Markdown. Not as a table: that would cut the end off each sentence, which says what to do."""
    return "\n".join(f"- **{alarm.severity}: {alarm.kind}** {cell(alarm.message)}" for alarm in alarms) + "\n"


def _budget(result: RunResult) -> Iterator[Alarm]:
    error = result.error
    why = clip(error.message if error else result.note, _LONGEST)
    figures = {"stage": error.stage, "item": error.item} if error else result.accounting.model_dump()
    yield Alarm(kind="budget", severity="warning", message=f"{result.playbook}: {why}", figures=figures)


def _failed(result: RunResult) -> Iterator[Alarm]:
    error = result.error
    # Whoever stopped a run knows of it. What the model's provider stopped has the stage `model`.
    by_a_person = result.status == "stopped" and error is not None and error.stage != "model"
    if error and not by_a_person:
        again = f"combee rerun {result.flow_run_id}" if result.flow_run_id else "the same command again"
        text = f"{result.playbook}: the run failed at {clip(error.told, _LONGEST)}. Mend it, then {again}"
        yield Alarm(kind="failed", severity="error", message=text, figures={"stage": error.stage, "item": error.item})


def _no_traces(result: RunResult, bars: AlarmBars) -> Iterator[Alarm]:
    if not result.accounting.total:
        text = f"{result.playbook}: {result.note or 'no traces'}; look whether the agents' logs arrive at the source"
        yield Alarm(kind="no-traces", severity="warning", message=text, figures={"in": 0})


def _nothing_learned(result: RunResult, bars: AlarmBars) -> Iterator[Alarm]:
    """A loop that runs and never learns looks like one that has nothing to learn."""
    counts = result.accounting
    if not counts.learned and counts.total - counts.skipped >= bars.silent:
        text = (
            f"{result.playbook}: none of {counts.total} traces taught anything ({counts.nothing} without an insight, "
            f"bar {bars.silent}); look at one of them: does it say how it ended, and does the reflector see that?"
        )
        yield Alarm(kind="nothing-learned", severity="warning", message=text, figures=counts.model_dump())


def _little_learned(result: RunResult, bars: AlarmBars) -> Iterator[Alarm]:
    counts = result.accounting
    settled = counts.learned + counts.nothing
    if counts.total and settled / counts.total < bars.learned:
        rest = {"skipped": counts.skipped, "refused": counts.refused, "failed": counts.failed}
        why = ", ".join(f"{number} {fate}" for fate, number in {**rest, "deferred": counts.deferred}.items() if number)
        text = (
            f"{result.playbook}: {settled} of {counts.total} traces ({settled / counts.total:.0%}) were read to the "
            f"end, below the bar of {bars.learned:.0%}: {why}; the reasons are in the artifact not-learned"
        )
        yield Alarm(kind="little-learned", severity="warning", message=text, figures=counts.model_dump())


def _survival(result: RunResult, bars: AlarmBars) -> Iterator[Alarm]:
    if not result.survival or result.survival[0].before < _FEWEST:
        return
    before, after = result.survival[0].before, result.survival[-1].after
    if after / before < bars.survival:
        text = (
            f"{result.playbook}: {after} of {before} new insights ({after / before:.0%}) came out of the reduce, "
            f"below the bar of {bars.survival:.0%}: smaller batches or --grouping bounded keep more"
        )
        yield Alarm(kind="survival", severity="warning", message=text, figures={"before": before, "after": after})


def _cost(result: RunResult, bars: AlarmBars) -> Iterator[Alarm]:
    cost = result.cost
    if bars.cost is None or not result.model_calls or (cost.total is not None and cost.total <= bars.cost):
        return
    shown = amount(cost.total, cost)
    known = "the model's price is not known" if cost.total is None else "look at the artifact cost for what was asked"
    text = f"{result.playbook}: the run has cost {shown} US dollars, the bar is {bars.cost:g}: {known}"
    yield Alarm(kind="cost", severity="warning", message=text, figures={"cost": cost.total, "bar": bars.cost})
