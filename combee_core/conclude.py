"""A batch's results → the state after it: operations and votes applied, every trace given its fate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combee_core.accounting import fates_of, unsolved
from combee_core.errors import RunError
from combee_core.ports import Learner
from combee_core.records import State
from combee_core.types import Curated, Group, Merged, Receipt, Reflected, RolledOut, Update
from combee_core.votes import votes


def check_failures(reflected: Sequence[Reflected], most: float) -> None:
    """Raise `RunError` when more than the share `most` of the reflections failed; each is named."""
    failed = [result for result in reflected if result.fate == "failed"]
    if len(failed) > most * len(reflected):
        causes = "; ".join(f"{result.trace_id}: {result.reason}" for result in failed[:3])
        more = f" (and {len(failed) - 3} more)" if len(failed) > 3 else ""
        raise RunError(
            f"{len(failed)} of {len(reflected)} reflections failed, more than the {most:.0%} allowed: {causes}{more}",
            "reflect",
            failed[0].trace_id,
        )


def conclude(
    number: int,
    state: Any,
    version: int,
    *,
    learner: Learner[Any],
    rolled: Sequence[RolledOut] = (),
    reflected: Sequence[Reflected] = (),
    groups: Sequence[Group] = (),
    curated: Sequence[Curated] = (),
    merged: Merged,
) -> State:
    """The record of batch `number`; `version` is the playbook version that new bullets will carry."""
    reflections = [result.reflection for result in reflected if result.reflection]
    update = Update(
        operations=merged.delta.operations,
        votes=votes(reflections),
        set_aside=merged.delta.set_aside,
        fates=merged.delta.fates,
    )
    applied = learner.apply(state, update, version)
    strange_tags = tuple(item for reflection in reflections for item in reflection.set_aside)
    return State(
        number=number,
        state=learner.dump(applied.state),
        update=update,
        fates=(*fates_of(reflected, groups, curated), *unsolved(rolled)),
        set_aside=(*strange_tags, *update.set_aside, *applied.set_aside),
        receipts=_receipts(rolled, reflected, curated, merged),
        groups=len(groups),
    )


def _receipts(
    rolled: Sequence[RolledOut], reflected: Sequence[Reflected], curated: Sequence[Curated], merged: Merged
) -> tuple[Receipt, ...]:
    results = (*rolled, *reflected, *curated, merged)
    return tuple(receipt for result in results for receipt in result.receipts)
