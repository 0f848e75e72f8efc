"""Bullet tags counted by code: each trace once for each bullet, in any order, whatever the number of copies."""

from __future__ import annotations

from collections.abc import Iterable

from combee_core.types import Reflection, Vote


def votes(reflections: Iterable[Reflection]) -> tuple[Vote, ...]:
    """One vote for each (bullet, trace) that was tagged helpful or harmful, sorted.

    A trace that tags one bullet both ways counts as harmful: the cautious reading, and independent of order.
    """
    cast: dict[tuple[str, str], Vote] = {}
    for reflection in reflections:
        for tag in reflection.tags:
            key = (tag.bullet_id, reflection.trace_id)
            if tag.tag == "neutral" or (key in cast and tag.tag == "helpful"):
                continue
            cast[key] = Vote(trace_id=reflection.trace_id, bullet_id=tag.bullet_id, tag=tag.tag)
    return tuple(cast[key] for key in sorted(cast))
