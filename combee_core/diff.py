"""What differs between two playbooks, bullet by bullet."""

from __future__ import annotations

from combee_core.base import Noun
from combee_core.playbook import Bullet, Playbook


class Changed(Noun):
    """A bullet before and after."""

    before: Bullet
    after: Bullet


class Diff(Noun):
    """Bullets by what happened to them; `counted` are those of which only counters or sources changed.

    A bullet under another heading is in `moved`, whatever else happened to it. The order of bullets is not compared.
    """

    added: tuple[Bullet, ...] = ()
    rewritten: tuple[Changed, ...] = ()
    counted: tuple[Changed, ...] = ()
    removed: tuple[Bullet, ...] = ()
    moved: tuple[Bullet, ...] = ()
    sections_added: tuple[str, ...] = ()
    sections_removed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when nothing differs."""
        return not any(getattr(self, name) for name in type(self).model_fields)


def diff(before: Playbook, after: Playbook) -> Diff:
    """The difference, in the order of the sections."""
    old = {bullet.id: bullet for bullet in before.bullets}
    new = {bullet.id: bullet for bullet in after.bullets}
    both = [Changed(before=old[i], after=new[i]) for i in new if i in old]
    was, now = _headings(before), _headings(after)
    return Diff(
        added=tuple(bullet for i, bullet in new.items() if i not in old),
        rewritten=tuple(c for c in both if c.before.text != c.after.text),
        counted=tuple(c for c in both if c.before.text == c.after.text and _tally(c.before) != _tally(c.after)),
        removed=tuple(bullet for i, bullet in old.items() if i not in new),
        moved=tuple(c.after for c in both if was[c.before.id] != now[c.after.id]),
        sections_added=_new_names(before, after),
        sections_removed=_new_names(after, before),
    )


def _tally(bullet: Bullet) -> tuple[int, int, list[str]]:
    return bullet.helpful, bullet.harmful, sorted(bullet.sources)


def _headings(playbook: Playbook) -> dict[str, str]:
    return {bullet.id: section.name for section in playbook.sections for bullet in section.bullets}


def _new_names(before: Playbook, after: Playbook) -> tuple[str, ...]:
    known = {section.name for section in before.sections}
    return tuple(dict.fromkeys(section.name for section in after.sections if section.name not in known))
