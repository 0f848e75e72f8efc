"""Estimates as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

from combee_core.estimate import Count, Estimate

CALLS = ("rollout", "reflect", "curate", "merge")
MARKS = "≤ if every trace teaches something, ~ depends on what the model says"
_WIDTH = 110


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows below a head: the first and the last column begin at the left, figures end at the right."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        first, *figures, last = row
        inner = (figure.rjust(width) for figure, width in zip(figures, widths[1:-1], strict=True))
        yield "  ".join((first.ljust(widths[0]), *inner, last)).rstrip()


def calls(found: Estimate, stages: Sequence[str]) -> list[str]:
    """A cell for each stage."""
    return [count(found.calls[stage]) for stage in stages]


def count(of: Count) -> str:
    """`12`, `≤12` where it may be fewer, `~12` where it depends on what the model says."""
    if of.is_exact:
        return f"{of.expected:,}" if of.expected else "-"
    return f"{'≤' if of.expected == of.at_most else '~'}{of.expected:,}"


def money(cost: float | None) -> str:
    """US dollars; what is unknown stays unknown."""
    if cost is None:
        return "unknown"
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:,.4f}"


def hours(found: Estimate) -> str:
    """`7.0–13` hours: if all calls took the same time, and with the slowest ones."""
    low, high = _hours(found.hours_at_least), _hours(found.hours)
    return high if low == high else f"{low}–{high}"


def _hours(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def sentences(said: Iterable[str]) -> Iterator[str]:
    """What an estimate rests on, one sentence after the other, folded."""
    for text in said:
        yield from wrap(text, _WIDTH, subsequent_indent="  ")


def shown(found: Estimate) -> dict[str, Any]:
    """An estimate as JSON: calls by stage with their bounds, tokens, cost and hours."""
    data = found.model_dump(
        mode="json", exclude={"input_tokens", "output_tokens", "hours", "hours_at_least", "bullets"}
    )
    tokens = {"input": found.input_tokens, "output": found.output_tokens}
    time = {"expected": round(found.hours, 4), "at_least": round(found.hours_at_least, 4)}
    return {**data, "tokens": tokens, "hours": time}
