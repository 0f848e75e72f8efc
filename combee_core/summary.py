"""A run in Markdown: what changed in the playbook and why, what became of every trace, what it cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from combee_core.config import STAGES
from combee_core.diff import Diff
from combee_core.playbook import Bullet
from combee_core.records import Amounts, RunResult
from combee_core.tally import MOST_SHOWN, Tally
from combee_core.types import Conflict, OperationFate, SetAside, Survival

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


def what_changed(result: RunResult, difference: Diff, made: Tally) -> str:
    """The summary of a finished run; `made` is what its states add up to."""
    version = f"version {result.version}" if result.version else "no version yet"
    parts = [
        f"# {cell(result.playbook)}: {version}",
        _figures(result),
        _sentence(parts_read(result)),
        _copies(made.copies_met),
        _sentence(insights(result.survival)),
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
        _listed("Contradictions", map(_conflict, made.conflicts), made.more_conflicts),
        _merges(made),
        _listed("Set aside", map(_aside, result.set_aside), result.more_set_aside),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(result: RunResult) -> str:
    digest = (result.digest or "")[:12]
    return f"Digest `{digest}`, flow run `{result.flow_run_id}`. {cell(result.note)}".strip()


def parts_read(result: RunResult) -> str:
    """How many calls the curators took, where it was more than one for each group; else nothing."""
    groups, calls = sum(result.groups), result.calls
    return f"{groups} groups were read in {calls} calls: some were too large, cut or refused" if calls > groups else ""


def insights(levels: Sequence[Survival]) -> str:
    """How many new insights went in and left each level, of all batches: one that came up in two counts twice."""
    if not levels:
        return ""
    path = "".join(f", {level.after} {_LEFT.get(level.level, level.level)}" for level in levels)
    estimated = " (estimated)" if any(level.estimated for level in levels) else ""
    known = levels[0].known
    old = f"; {known} more {'was' if known == 1 else 'were'} in the playbook before" if known else ""
    return f"insights: {levels[0].before} distinct{path}{old}{estimated}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _copies(met: float) -> str:
    return f"{met:.0%} of a batch's reflections lay twice in one group." if met else ""


def _listed(title: str, items: Iterable[Sequence[str]], more: int = 0) -> str:
    """A heading and a list: tables would cut long texts, and the sources behind them, off the page.

    `more` counts what there is besides the items.
    """
    rows = ["\n  - ".join((f"- {first}", *details)) for first, *details in items]
    if not rows:
        return ""
    count = len(rows) + more
    rest = [f"\n… and {count - MOST_SHOWN:,} more."] if count > MOST_SHOWN else []
    return "\n".join([f"## {title} ({count:,})\n", *rows[:MOST_SHOWN], *rest])


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


def _merges(made: Tally) -> str:
    entered = sum(made.merged.values())
    if not entered:
        return ""
    kept, merged, dropped = (made.merged.get(name, 0) for name in ("kept", "merged", "dropped"))
    line = f"{entered} operations entered: {kept} kept, {merged} merged, {dropped} dropped"
    head = f"## The merge\n\n{line} ({(kept + merged) / entered:.0%} survived)."
    listed = _listed("Dropped by the merge", map(_dropped, made.dropped), dropped - len(made.dropped))
    return f"{head}\n\n{listed}".strip()


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
    calls = table(("stage", "model calls, this attempt"), rows)
    return f"{calls}\n\n{table(('', 'this attempt', 'all attempts'), amounts)}\n"


def amount(value: float | None, of: Amounts) -> str:
    """A figure for people: unknown stays unknown, and a sum with unknown parts says so."""
    if value is None:
        return "unknown"
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
    return f"at least {number}" if of.at_least else number
