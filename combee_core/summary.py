"""A run in Markdown: what changed in the playbook and why, what became of every trace, what it cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from combee_core.diff import Diff
from combee_core.ledger import STAGES
from combee_core.playbook import Bullet
from combee_core.records import Amounts, RunResult, State
from combee_core.types import OperationFate, SetAside

_SHOWN = 60
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})


def cell(text: str) -> str:
    """Text that is safe inside a Markdown table: nothing in it is read as a table, as HTML or as a link."""
    line = " ".join(text.replace("\0", " ").splitlines())
    return re.sub(r"[\\`*_\[\]~$]|:(?=//)", r"\\\g<0>", line).translate(_ENTITIES)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(str(value)) for value in row)} |" for row in rows]
    return "\n".join(lines)


def what_changed(result: RunResult, difference: Diff, states: Sequence[State]) -> str:
    """The summary of a finished run."""
    version = f"version {result.version}" if result.version else "no version yet"
    parts = [f"# {cell(result.playbook)}: {version}", _figures(result), _copies(states)]
    if result.simulated:
        parts.append("**Simulated**: the answers come from the offline stand-in, not from a model.")
    if difference.is_empty:
        parts.append("Nothing changed in the playbook.")
    parts += [
        _listed("New bullets", ((_named(b), _sources(b)) for b in difference.added)),
        _listed(
            "Rewritten",
            ((_named(c.after), f"before: {cell(c.before.text)}", _sources(c.after)) for c in difference.rewritten),
        ),
        _counters(difference),
        _listed("Removed", ((_named(bullet),) for bullet in difference.removed)),
        _merges([fate for state in states for fate in state.update.fates]),
        _listed("Set aside", map(_aside, result.set_aside)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(result: RunResult) -> str:
    digest = (result.digest or "")[:12]
    return f"Digest `{digest}`, flow run `{result.flow_run_id}`. {cell(result.note)}".strip()


def _copies(states: Sequence[State]) -> str:
    met = [state.copies_met for state in states]
    return f"{sum(met) / len(met):.0%} of a batch's reflections lay twice in one group." if any(met) else ""


def _listed(title: str, items: Iterable[Sequence[str]]) -> str:
    """A heading and a list: tables would cut long texts, and the sources behind them, off the page."""
    rows = ["\n  - ".join((f"- {first}", *details)) for first, *details in items]
    if not rows:
        return ""
    more = [f"\n… and {len(rows) - _SHOWN} more."] if len(rows) > _SHOWN else []
    return "\n".join([f"## {title} ({len(rows)})\n", *rows[:_SHOWN], *more])


def _named(bullet: Bullet) -> str:
    return f"**{cell(bullet.id)}** {cell(bullet.text)}"


def _aside(item: SetAside) -> tuple[str, str]:
    return _quoted(item.what), f"because {cell(item.reason)} ({cell(item.where)})"


def _dropped(fate: OperationFate) -> tuple[str, str]:
    return _quoted(fate.text), f"from {cell(fate.origin)}: {cell(fate.because)}"


def _quoted(text: str) -> str:
    """In quotation marks, so that no text can begin a heading or a list of its own."""
    return f"“{cell(text)}”"


def _sources(bullet: Bullet) -> str:
    return f"from {', '.join(map(cell, bullet.sources)) or 'nowhere'}"


def _counters(difference: Diff) -> str:
    rows = [
        (
            c.after.id,
            f"{c.before.helpful} → {c.after.helpful}",
            f"{c.before.harmful} → {c.after.harmful}",
            f"{len(c.before.sources)} → {len(c.after.sources)}",
        )
        for c in difference.counted
    ]
    head = ("bullet", "helpful", "harmful", "sources")
    return f"## Counters and evidence ({len(rows)})\n\n{table(head, rows)}" if rows else ""


def _merges(fates: Sequence[OperationFate]) -> str:
    if not fates:
        return ""
    counts = Counter(fate.fate for fate in fates)
    survived = (counts["kept"] + counts["merged"]) / len(fates)
    line = ", ".join(f"{counts[name]} {name}" for name in ("kept", "merged", "dropped"))
    dropped = [_dropped(fate) for fate in fates if fate.fate == "dropped"]
    head = f"## The merge\n\n{len(fates)} operations entered: {line} ({survived:.0%} survived)."
    return f"{head}\n\n{_listed('Dropped by the merge', dropped)}".strip()


def accounting(result: RunResult) -> list[dict[str, object]]:
    """The accounting as rows of fate and number."""
    counts: dict[str, int] = result.accounting.model_dump()
    return [{"fate": name, "traces": number} for name, number in counts.items()]


def unlearned(result: RunResult) -> list[dict[str, object]]:
    """Every trace that was skipped, refused, failed or deferred, and every file left out, with the reason."""
    traces = [(fate.trace_id, str(fate.fate), fate.reason) for fate in result.fates if not fate.is_settled]
    files = [(file.where, "left out", file.reason) for file in result.left_out]
    return [{"trace": what, "fate": fate, "why": why} for what, fate, why in (*traces, *files)]


def spent(result: RunResult) -> str:
    """Calls, tokens and money."""
    rows = [(stage, result.model_calls.get(stage, 0)) for stage in STAGES]
    amounts = [
        ("tokens", amount(result.tokens.this_run, result.tokens), amount(result.tokens.total, result.tokens)),
        ("cost, US dollars", amount(result.cost.this_run, result.cost), amount(result.cost.total, result.cost)),
    ]
    return f"{table(('stage', 'model calls'), rows)}\n\n{table(('', 'this run', 'in all'), amounts)}\n"


def amount(value: float | None, of: Amounts) -> str:
    """A figure for people: unknown stays unknown, and a sum with unknown parts says so."""
    if value is None:
        return "unknown"
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
    return f"at least {number}" if of.at_least else number
