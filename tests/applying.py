"""Updates applied to a playbook of three bullets."""

from __future__ import annotations

from typing import Any

from builders import numbered

from combee_core.learners.ace.apply import apply
from combee_core.playbook import Bullet, Playbook
from combee_core.ports import Applied
from combee_core.types import Operation, Update, Vote

BOOK = numbered("Round first.", "Round last.", "Be careful.")
FIRST, SECOND, THIRD = BOOK.bullets


def act(book: Playbook, *ops: Operation, votes: tuple[Vote, ...] = (), version: int = 1) -> Applied[Playbook]:
    """The update applied as that version."""
    return apply(book, Update(operations=ops, votes=votes), version)


def after(book: Playbook, *ops: Operation, **given: Any) -> Playbook:
    """The playbook after the update."""
    return act(book, *ops, **given).state


def the(book: Playbook, bullet_id: str) -> Bullet:
    """The bullet, which is there."""
    found = book.find(bullet_id)
    assert found is not None
    return found
