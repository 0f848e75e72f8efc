"""Runs and playbooks as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from combee_core.playbook import Bullet
from combee_core.playbook_text import render_bullet
from combee_core.records import DayResult, RunResult, Sizing, TraceFate
from combee_core.summary import amount, insights, parts_read


def run_lines(result: RunResult) -> Iterator[str]:
    """A run's outcome."""
    if result.simulated:
        yield "(simulated: the answers come from the offline stand-in)"
    if result.version is not None:
        known = f"version {result.version}, digest {(result.digest or '')[:12]}"
        yield f"{result.playbook}: {known if result.version else 'no version yet'}"
    if result.note:
        yield result.note
    if result.days != result.days[:1]:
        yield from day_lines(result.days)
    counts = result.accounting.model_dump()
    yield "traces: " + ", ".join(f"{number} {fate}" for fate, number in counts.items() if number or fate == "in")
    yield from filter(None, (_size(result.sizing), parts_read(result), insights(result.survival)))
    yield "model calls: " + ", ".join(f"{number} {stage}" for stage, number in result.model_calls.items())
    tokens, cost = result.tokens, result.cost
    yield f"tokens: {amount(tokens.this_run, tokens)} now, {amount(tokens.total, tokens)} in all"
    yield f"cost in US dollars: {amount(cost.this_run, cost)} now, {amount(cost.total, cost)} in all"
    yield from _losses([fate for fate in result.fates if not fate.is_settled])


def _losses(fates: Sequence[TraceFate]) -> Iterator[str]:
    """A line a trace; what was only put off, hundreds of traces where a run failed, is a line for each reason."""
    put_off = Counter(fate.reason for fate in fates if fate.fate == "deferred")
    for fate in fates:
        if fate.fate != "deferred":
            yield f"  {fate.fate}: {fate.trace_id}: {fate.reason}"
    for reason, number in put_off.items():
        yield f"  deferred: {number:,} {'trace' if number == 1 else 'traces'}: {reason}"


def day_lines(days: Sequence[DayResult]) -> Iterator[str]:
    """A line a day, under headings."""
    head = ("day", "", "traces", "version", "calls", "run")
    rows = [(str(d.day), d.happened, d.traces, d.version or "-", d.model_calls, d.run or "-") for d in days]
    wide = max(len(row[1]) for row in (head, *rows))
    for day, happened, traces, version, calls, run in (head, *rows):
        yield f"{day:<10}  {happened:<{wide}}  {traces:>7}  {version:>7}  {calls:>6}  {run}"


def _size(sizing: Sizing | None) -> str:
    if sizing is None or sizing.batch_size is None:
        return ""
    return f"batch size: {sizing.told}"


def bullet_lines(bullet: Bullet) -> Iterator[str]:
    """A bullet and where it comes from."""
    yield render_bullet(bullet)
    if bullet.sources:
        yield f"    from {', '.join(bullet.sources)}"
    elif bullet.origin == "import":
        yield "    imported"
