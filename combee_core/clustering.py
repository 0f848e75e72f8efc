"""Texts that are alike, found among many: the same rule for what a merge joins and for which insights survive.

Every pair is compared, block by block, so that memory stays bounded; a chain of like texts is then cut by average
linkage: two clusters become one only while their pairs are alike on average.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import Any

from combee_core.errors import UsageError
from combee_core.tfidf import vectors

ALIKE = 0.68
"""At or above this cosine two texts are alike. Measured in the simulated world (tests/benchmarks/quality.py): the three
wordings of a rule are, even where they are the only texts, and of different rules hardly one pair in a million is."""

Embed = Callable[[Sequence[str]], Any]
"""Texts → a matrix, dense or sparse, with a row of length 1 for each, such as `tfidf.vectors` or an embedding model."""

Find = Callable[[Sequence[str]], list[list[int]]]
"""Texts → the places of those that are alike, such as `clusters`."""

LARGEST = 1_500
"""Texts that are linked at once: a chain of more is cut into parts first, or its distances would not fit in memory."""

_BLOCK = 512
_COMMON = 192
_NEEDS = ("numpy", "scipy.sparse", "scipy.sparse.csgraph", "scipy.cluster.hierarchy", "scipy.spatial.distance")


def load() -> None:
    """Load what clustering needs, about a second of CPU; nothing where that is done.

    Raises `UsageError` naming the extra where it is not installed.
    """
    try:
        for name in _NEEDS:
            import_module(name)
    except ModuleNotFoundError as error:
        advice = "pip install 'combee-pipeline[pipeline]'"
        raise UsageError(f"finding texts that are alike needs numpy and scipy ({error}): {advice}") from error


def load_soon() -> None:
    """Begin to load it beside other work, such as waiting for a model; what is missing is told where it is used."""
    if not all(name in sys.modules for name in _NEEDS):
        Thread(target=_load_quietly, name="clustering", daemon=True).start()


def _load_quietly() -> None:
    with suppress(UsageError):
        load()


def clusters(texts: Sequence[str], alike: float = ALIKE, embed: Embed = vectors) -> list[list[int]]:
    """The places of texts that are alike, each list and their list in order; a text like no other is alone.

    Equal texts are always together. The result does not depend on the order of `texts`. About 3 CPU seconds and
    150 MB for 10,000 texts of a sentence each; time grows with the square. Raises what `load` and `embed` raise.
    """
    places: dict[str, list[int]] = {}
    for at, text in enumerate(texts):
        places.setdefault(text, []).append(at)
    distinct = sorted(places)
    found = _clusters(distinct, alike, embed) if len(distinct) > 1 else iter([[at] for at in range(len(distinct))])
    return sorted(sorted(at for member in members for at in places[distinct[member]]) for members in found)


def like_any(texts: Sequence[str], others: Sequence[str], alike: float = ALIKE, embed: Embed = vectors) -> list[int]:
    """The places of texts that are like at least one of the `others`. Time grows with the product of both.

    Raises what `load` and `embed` raise.
    """
    if not texts or not others:
        return []
    load()
    import numpy as np

    rows = embed([*texts, *others])
    new, old = rows[: len(texts)], rows[len(texts) :]
    near = (new[start : start + _BLOCK] @ old.T for start in range(0, len(texts), _BLOCK))
    dense = (block.toarray() if hasattr(block, "toarray") else block for block in near)
    return np.flatnonzero(np.concatenate([block.max(axis=1) for block in dense]) >= alike).tolist()


def _clusters(texts: Sequence[str], alike: float, embed: Embed) -> Iterator[Sequence[int]]:
    load()
    import numpy as np

    rows = embed(texts)
    labels = _connected(rows, alike)
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(members) <= 2:
            yield members.tolist()  # nothing to cut
            continue
        for start in range(0, len(members), LARGEST):
            yield from _linked(rows, members[start : start + LARGEST], alike)


def _connected(rows: Any, alike: float) -> Any:
    """A label for each row; rows that a chain of like pairs joins have the same one."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = rows.shape[0]
    labels = np.arange(count)
    for start, near in _blocks(rows):
        one, other = np.nonzero(near >= alike)
        pairs = labels[one + start], labels[other + start]
        graph = coo_array((np.ones(len(one), bool), pairs), shape=(count, count))
        labels = connected_components(graph, directed=False)[1][labels]
    return labels


def _blocks(rows: Any) -> Iterator[tuple[int, Any]]:
    """Cosines of a block of rows with all rows from its first on.

    Pieces that most texts share are multiplied densely: a sparse product would take a step for each pair of texts.
    """
    import numpy as np

    dense, rest = _split(rows)
    for start in range(0, rows.shape[0], _BLOCK):
        near = dense[start : start + _BLOCK] @ dense[start:].T
        if rest is not None:
            near += (rest[start : start + _BLOCK] @ rest[start:].T).toarray()
        yield start, np.asarray(near)


def _split(rows: Any) -> tuple[Any, Any]:
    import numpy as np
    from scipy.sparse import issparse

    if not issparse(rows):
        return np.asarray(rows), None
    often = np.argsort(-np.bincount(rows.indices, minlength=rows.shape[1]), kind="stable")
    by_column = rows.tocsc()
    return by_column[:, often[:_COMMON]].toarray(), by_column[:, often[_COMMON:]].tocsr()


def _linked(rows: Any, members: Any, alike: float) -> list[list[int]]:
    """One component, cut by average linkage."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(members) == 1:
        return [[int(members[0])]]
    part = rows[members]
    near = part @ part.T
    near = np.asarray(near.toarray() if hasattr(near, "toarray") else near)
    if near.min() >= alike:
        return [members.tolist()]  # averages of what is all alike are too
    apart = squareform(np.clip(1 - near, 0, None), checks=False)
    labels = fcluster(linkage(apart, "average"), 1 - alike + 1e-6, "distance")
    return [members[labels == label].tolist() for label in np.unique(labels)]
