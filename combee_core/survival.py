"""How many distinct insights pass each level of the reduce: what context overload costs, as a number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from combee_core.clustering import Embed, clusters, like_any
from combee_core.tfidf import vectors
from combee_core.types import Survival

Tell = Callable[[str], Collection[Hashable]]
"""The known rules that a text states; such as those of a simulated world."""


def survival(
    insights: Sequence[str],
    levels: Sequence[tuple[str, Sequence[str]]],
    said_before: Sequence[str] = (),
    tell: Tell | None = None,
    embed: Embed = vectors,
) -> tuple[Survival, ...]:
    """For each level (its name, and what its operations say) how many of the distinct `insights` are still there.

    An insight that is among what was `said_before` is not new, and counted apart.
    With `tell` an insight is a known rule. Without it it is a cluster of texts that are alike, by the same rule as in
    the merge, and the figures are an estimate: an insight that a curator put in quite different words counts as lost.
    Nothing in, no figures.
    """
    if not insights:
        return ()
    texts = [list(insights), *(list(said) for _, said in levels)]
    if tell:
        (found, *after), old = _told(texts, tell), _told([said_before], tell)[0]
    else:
        (found, *after), old = _alike(texts, said_before, embed)
    new, known = found - old, len(found & old)
    return tuple(
        Survival(level=name, before=len(new), after=len(new & there), known=known, estimated=tell is None)
        for (name, _), there in zip(levels, after, strict=True)
    )


def _told(texts: Sequence[Sequence[str]], tell: Tell) -> list[set[Hashable]]:
    return [{rule for text in said for rule in tell(text)} for said in texts]


def _alike(
    texts: Sequence[Sequence[str]], said_before: Sequence[str], embed: Embed
) -> tuple[list[set[Hashable]], set[Hashable]]:
    """The clusters that each list of texts is in, and those that say what was said before."""
    distinct = sorted({text for said in texts for text in said if text.strip()})
    number = {distinct[at]: n for n, group in enumerate(clusters(distinct, embed=embed)) for at in group}
    old: set[Hashable] = {number[distinct[at]] for at in like_any(distinct, said_before, embed=embed)}
    return [{number[text] for text in said if text in number} for said in texts], old
