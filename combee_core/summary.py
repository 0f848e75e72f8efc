"""A run in Markdown: what changed in the playbook and why, what became of every trace, what it cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from combee_core.diff import Diff
from combee_core.ledger import STAGES
from combee_core.playbook import Bullet
from combee_core.records import Amounts, RunResult, State
from combee_core.types import Conflict, OperationFate, SetAside

_SHOWN = 60
_LEFT = {"curate": "left the curators", "merge": "the merge"}
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
    parts = [
        f"# {cell(result.playbook)}: {version}",
        _figures(result),
        _groups(states),
        _copies(states),
        _survival(states),
    ]
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
        _listed("Contradictions", (_conflict(c) for state in states for c in state.update.conflicts)),
        _merges([fate for state in states for fate in state.update.fates]),
        _listed("Set aside", map(_aside, result.set_aside)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(result: RunResult) -> str:
    digest = (result.digest or "")[:12]
    return f"Digest `{digest}`, flow run `{result.flow_run_id}`. {cell(result.note)}".strip()


def _groups(states: Sequence[State]) -> str:
    groups, calls = sum(state.groups for state in states), sum(state.calls for state in states)
    if calls <= groups:
        return ""
    return f"The curators made {calls} calls for {groups} groups: what was too large, cut or refused was read in parts."


def _survival(states: Sequence[State]) -> str:
    """Of all batches, by the levels that all of them had. An insight that came up in two batches counts in both."""
    batches = [{level.level: level for level in state.survival} for state in states if state.survival]
    if not batches:
        return ""
    common = [name for name in batches[0] if all(name in levels for levels in batches)]
    totals = {name: sum(levels[name].after for levels in batches) for name in common}
    before = sum(next(iter(levels.values())).before for levels in batches)
    path = ", ".join(f"{left} {_LEFT.get(name, name)}" for name, left in totals.items())
    estimated = any(level.estimated for levels in batches for level in levels.values())
    return f"Insights: {before} distinct; {path}{' (estimated)' if estimated else ''}."


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


def _conflict(conflict: Conflict) -> tuple[str, ...]:
    """The reason first, so that what is to be decided is read before the texts."""
    sources = ", ".join(map(cell, conflict.sources)) or "nowhere"
    return cell(conflict.reason), *map(_quoted, conflict.texts), f"from {sources}"


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
