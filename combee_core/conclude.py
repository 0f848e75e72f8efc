"""A batch's results → the state after it: operations and votes applied, every trace given its fate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from combee_core.accounting import fates_of, unsolved
from combee_core.calls import Receipt
from combee_core.causes import grouped, plain
from combee_core.errors import RunError
from combee_core.ports import Learner
from combee_core.records import Cut, Plan, State
from combee_core.shuffle import copies_met
from combee_core.survival import Tell, survival
from combee_core.types import Curated, Delta, Group, Merged, Reflected, Reflection, RolledOut, Update
from combee_core.votes import votes

_ROUNDING = 1e-9
"""0.29 of 100 is 28.999… in floating point; 29 are allowed all the same."""


def check_failures(reflected: Sequence[Reflected], most: float, of: int = 0) -> None:
    """Raise `RunError` when more than the share `most` of the reflections failed, naming the first of them.

    The share is that of `of` reflections where that is more: a batch that is small only because it measures is judged
    as if it had the usual size.
    """
    failed = [result for result in reflected if result.fate == "failed"]
    if len(failed) > most * max(len(reflected), of) + _ROUNDING:
        causes = grouped([plain(result.reason) for result in failed])
        named = ", ".join(result.trace_id for result in failed[:3])
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        share = f"{len(failed)} of {len(reflected)} reflections failed, more than the {most:.0%} allowed"
        raise RunError(
            f"{share}: {causes} ({named}{more})",
            "reflect",
            failed[0].trace_id,
        )


@dataclass(frozen=True)
class Results:
    """What the stages of one batch made; `cut` says why no more of it was done, where a cap ended the run in it."""

    rolled: Sequence[RolledOut] = ()
    reflected: Sequence[Reflected] = ()
    groups: Sequence[Group] = ()
    curated: Sequence[Curated] = ()
    merged: Merged = field(default_factory=lambda: Merged(delta=Delta()))
    cut: Cut | None = None

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Of every answer that a stage used."""
        results: list[RolledOut | Reflected | Curated | Merged]
        results = [*self.rolled, *self.reflected, *self.curated, self.merged]
        return tuple(receipt for result in results for receipt in result.receipts)

    @property
    def reflections(self) -> list[Reflection]:
        """All but those that only groups hold which nobody has curated: they will be learned another time."""
        done = {result.group for result in self.curated}
        read, left = (
            {entry.trace_id for group in self.groups if (group.number in done) is is_done for entry in group.entries}
            for is_done in (True, False)
        )
        all_of_them = (result.reflection for result in self.reflected if result.reflection)
        return [one for one in all_of_them if one.trace_id in read or one.trace_id not in left]

    @property
    def insights(self) -> list[str]:
        """What the reflections say, without those that say nothing."""
        return [reflection.key_insight for reflection in self.reflections if not reflection.is_nothing]

    @property
    def levels(self) -> list[tuple[str, list[str]]]:
        """The levels of the reduce by name, each with the texts of the operations that left it."""
        between = [(f"round {n}", delta) for n, delta in enumerate(self.merged.between, start=1)]
        curators = [op.text for result in self.curated for op in result.delta.operations]
        merges = [*between, ("merge", self.merged.delta)]
        return [("curate", curators), *((name, [op.text for op in delta.operations]) for name, delta in merges)]


def conclude(
    number: int,
    state: Any,
    version: int,
    results: Results,
    *,
    learner: Learner[Any],
    tell: Tell | None = None,
    plan: Plan | None = None,
    day: date | None = None,
) -> State:
    """The record of batch `number`, from `state` before it; `version` is the one that new bullets will carry.

    `day` is the one that the batch is of; `plan` says whose earlier verdicts are withdrawn.
    `tell` names the known rules that a text states, where there are any: then survival is counted, not estimated.
    """
    reflections = results.reflections
    delta = results.merged.delta
    changed = frozenset(plan.withdrawn if plan else ())
    update = Update(
        day=day,
        withdrawn=tuple(result.trace_id for result in results.reflected if result.trace_id in changed),
        operations=delta.operations,
        votes=votes(reflections),
        set_aside=delta.set_aside,
        fates=delta.fates,
        conflicts=delta.conflicts,
    )
    applied = learner.apply(state, update, version)
    strange_tags = tuple(item for reflection in reflections for item in reflection.set_aside)
    return State(
        number=number,
        state=learner.dump(applied.state),
        update=update,
        fates=(*fates_of(results.reflected, results.groups, results.curated), *unsolved(results.rolled)),
        set_aside=(*strange_tags, *update.set_aside, *applied.set_aside),
        receipts=results.receipts,
        groups=len(results.curated),
        calls=sum(curated.calls for curated in results.curated),
        copies_met=copies_met(results.groups),
        cut=results.cut,
        survival=survival(results.insights, results.levels, learner.statements(state), tell),
    )
