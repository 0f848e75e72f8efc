"""What differs between two playbooks, bullet by bullet."""

from __future__ import annotations

from combee_core.playbook import Bullet, Playbook
from combee_core.types import Noun


class Changed(Noun):
    """A bullet before and after."""

    before: Bullet
    after: Bullet


class Diff(Noun):
    """Bullets by what happened to them; `counted` are those of which only counters or sources changed."""

    added: tuple[Bullet, ...] = ()
    rewritten: tuple[Changed, ...] = ()
    counted: tuple[Changed, ...] = ()
    removed: tuple[Bullet, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when nothing differs."""
        return not (self.added or self.rewritten or self.counted or self.removed)


def diff(before: Playbook, after: Playbook) -> Diff:
    """The difference, in the order of the sections."""
    old = {bullet.id: bullet for bullet in before.bullets}
    new = {bullet.id: bullet for bullet in after.bullets}
    both = [Changed(before=old[i], after=new[i]) for i in new if i in old]
    return Diff(
        added=tuple(bullet for i, bullet in new.items() if i not in old),
        rewritten=tuple(c for c in both if c.before.text != c.after.text),
        counted=tuple(c for c in both if c.before.text == c.after.text and _tally(c.before) != _tally(c.after)),
        removed=tuple(bullet for i, bullet in old.items() if i not in new),
    )


def _tally(bullet: Bullet) -> tuple[int, int, tuple[str, ...]]:
    return bullet.helpful, bullet.harmful, bullet.sources
