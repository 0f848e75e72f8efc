"""Days of traces before they are learned: which batches they would be cut into, and what each day will cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from combee_core.base import Noun
from combee_core.estimate import Basis, Estimate, Load, estimate
from combee_core.records import Item, Sizing
from combee_core.runs import Part


class DayWork(Noun):
    """A day's `traces` (or samples), and the batches of them that are still to be learned; of the backlog, what waits
    there; without a day, all input.

    `items` are those traces where there is something to learn. `left_out` are files and runs that cannot be used.
    `batching` says how large the batches are and why, `note` what is done already or why nothing is to be done.
    `bullets` are the playbook's tokens in a run that was begun before.
    """

    day: Part = None
    traces: int = 0
    items: tuple[Item, ...] = ()
    left_out: int = 0
    loads: tuple[Load, ...] = ()
    batching: str = ""
    note: str = ""
    bullets: float | None = None


class DayEstimate(Noun):
    """A day (or the backlog) and what it will cost."""

    day: Part
    traces: int
    left_out: int
    batching: str
    note: str
    estimate: Estimate


class Outlook(Noun):
    """Days in their order, and all of them together."""

    days: tuple[DayEstimate, ...] = ()
    total: Estimate = Estimate()


def estimate_days(works: Iterable[DayWork], basis: Basis, *, independent: bool = False) -> Outlook:
    """The cost of days that are learned one after the other, each with the playbook that those before it have left.

    `independent` days all begin with the present one.
    """
    days, total = list[DayEstimate](), Estimate(bullets=basis.bullets)
    for work in works:
        before = basis.bullets if independent else total.bullets
        cost = estimate(work.loads, replace(basis, bullets=before if work.bullets is None else work.bullets))
        days.append(DayEstimate(**work.model_dump(exclude={"items", "loads", "bullets"}), estimate=cost))
        total = total.plus(cost)
    return Outlook(days=tuple(days), total=total)


def guessed(sizing: Sizing, fallback: int) -> Sizing:
    """The sizing with `fallback` where the batch size is still to be measured."""
    if sizing.batch_size is not None:
        return sizing
    measured = ", ".join(map(str, sizing.profile))
    reason = f"batches of {measured} measure the batch size; {fallback} is taken for the rest"
    return sizing.model_copy(update={"batch_size": fallback, "reason": reason})
