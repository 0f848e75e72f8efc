"""Which traces an operation rests on. Code decides; a model only points at numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from combee_core.similarity import SAME, similarity
from combee_core.types import Reflection

CROWD = 4
"""From this many distinct traces on, a claim on the whole group must be backed by each of them."""
_NEAR = 0.9
_MOST = 3


class Citation(NamedTuple):
    """Trace ids, sorted; `inferred` when the model did not name exactly these."""

    trace_ids: tuple[str, ...]
    inferred: bool


def cite(text: str, named: Sequence[Reflection], group: Sequence[Reflection]) -> Citation:
    """The traces behind `text`: those named, unless none were or the whole of a crowd was claimed.

    A claim on all of four or more distinct traces stands only if each one's reflection states the specific; else,
    and where nothing was named, the most similar reflections are taken and marked. Copies of a trace count once.
    """
    claimed, everyone = {r.trace_id for r in named}, {r.trace_id for r in group}
    if not claimed:
        return Citation(_most_similar(text, group), inferred=True)
    if len(claimed) < CROWD or claimed != everyone:
        return Citation(tuple(sorted(claimed)), inferred=False)
    backing = {r.trace_id for r in group if _states(r, text)}
    if backing == everyone:
        return Citation(tuple(sorted(claimed)), inferred=False)
    return Citation(tuple(sorted(backing)) or _most_similar(text, group), inferred=True)


def _states(reflection: Reflection, text: str) -> bool:
    return similarity(reflection.key_insight, text) >= SAME


def _most_similar(text: str, group: Sequence[Reflection]) -> tuple[str, ...]:
    score = {r.trace_id: similarity(r.key_insight, text) for r in group}
    ranked = sorted(score, key=lambda trace_id: (-score[trace_id], trace_id))
    near = [trace_id for trace_id in ranked if score[trace_id] >= _NEAR * score[ranked[0]]]
    return tuple(sorted(near[:_MOST]))
