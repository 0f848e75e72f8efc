"""Recorded updates applied again to another base, without a model call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from combee_core.ports import Applied, Learner
from combee_core.types import SetAside, Update


def rebase(steps: Iterable[tuple[Update, Any]], base: Any, *, learner: Learner[Any], version: int) -> Applied[Any]:
    """All updates of a run, in order, on `base`; gone through once.

    Each comes with the run's own state that it was made for. Bullets that the run itself created get new ids on the
    new base; later updates of the run that point at them are translated. What no longer fits is set aside with a
    reason.
    """
    state, set_aside, renamed = base, list[SetAside](), dict[str, str]()
    for update, before in steps:
        there = learner.apply(before, update, version)
        here = learner.apply(state, _translate(update, renamed), version)
        renamed |= {there.ids[i]: here.ids[i] for i in there.ids.keys() & here.ids.keys()}
        state = here.state
        set_aside.extend(here.set_aside)
    return Applied(state, tuple(set_aside))


def _translate(update: Update, renamed: dict[str, str]) -> Update:
    operations = tuple(
        op.model_copy(update={"bullet_ids": tuple(renamed.get(i, i) for i in op.bullet_ids)})
        for op in update.operations
    )
    votes = tuple(v.model_copy(update={"bullet_id": renamed.get(v.bullet_id, v.bullet_id)}) for v in update.votes)
    return update.model_copy(update={"operations": operations, "votes": votes})
