"""Exactly one fate for each trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from combee_core.errors import RunError
from combee_core.records import Accounting, Plan, TraceFate
from combee_core.types import Curated, Group, Reflected, RolledOut, Unread


def fates_of(
    reflected: Sequence[Reflected], groups: Sequence[Group], curated: Sequence[Curated]
) -> tuple[TraceFate, ...]:
    """The fates in one batch. A trace counts as refused by the curator only if none of its copies was read."""
    read: set[str] = set()
    refused: set[str] = set()
    entries = {group.number: {r.trace_id for r in group.entries} for group in groups}
    for result in curated:
        refused |= set(result.refused)
        read |= entries[result.group] - set(result.refused)
    return tuple(sorted((_fate(r, read, refused) for r in reflected), key=lambda fate: fate.trace_id))


def _fate(result: Reflected, read: set[str], refused: set[str]) -> TraceFate:
    if result.fate != "insight":
        return TraceFate(trace_id=result.trace_id, fate=result.fate, reason=result.reason)
    if result.trace_id in read:
        return TraceFate(trace_id=result.trace_id, fate="learned")
    reason = "refused by the curator" if result.trace_id in refused else "its group was not curated"
    return TraceFate(
        trace_id=result.trace_id, fate="refused" if result.trace_id in refused else "deferred", reason=reason
    )


def unsolved(rolled: Iterable[RolledOut]) -> tuple[TraceFate, ...]:
    """Samples without a trajectory."""
    return tuple(
        TraceFate(trace_id=r.sample_id, fate="refused", reason=r.reason) for r in rolled if r.trajectory is None
    )


def skipped(unread: Iterable[Unread]) -> tuple[TraceFate, ...]:
    """Runs that were found and not read. Files of an unknown format hold no known number of runs and count nowhere."""
    return tuple(
        TraceFate(trace_id=u.trace_id, fate="skipped", reason=f"{u.reason} ({u.where})") for u in unread if u.trace_id
    )


def account(plan: Plan, fates: Iterable[TraceFate]) -> tuple[Accounting, tuple[TraceFate, ...]]:
    """The table, and the fates of all traces that were not settled; one of the plan that has no fate is deferred.

    Raises `RunError` if the fates do not add up to what came in.
    """
    counts, missing = Counter[str](), dict.fromkeys(item.id for item in plan.items)
    unsettled = list[TraceFate]()
    for fate in chain(fates, _deferred(missing), skipped(plan.unread)):
        counts[fate.fate] += 1
        missing.pop(fate.trace_id, None)
        if not fate.is_settled:
            unsettled.append(fate)
    known = len(plan.items) + sum(bool(u.trace_id) for u in plan.unread)
    table = Accounting.model_validate({"in": known, **counts})
    if not table.balances:
        raise RunError(f"accounting does not add up: {known} traces came in, {dict(counts)}", "accounting")
    return table, tuple(sorted(unsettled, key=lambda fate: fate.trace_id))


def _deferred(missing: Iterable[str]) -> Iterator[TraceFate]:
    """The fates of those that are still missing when the first is asked for."""
    for trace_id in tuple(missing):
        yield TraceFate(trace_id=trace_id, fate="deferred", reason="the run stopped first")
