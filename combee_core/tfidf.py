"""Texts as vectors: counts of short pieces of characters, weighed by how rare a piece is (TF-IDF), of length 1.

Cheap, without a model, the same on every machine. The cosine of two vectors tells wordings of one fact from other
facts; it understands neither negation nor numbers, so what it calls alike is for somebody to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZE = 3
"""Characters of a piece."""

_PRIOR = 5
"""Texts that are imagined to hold every piece: among a handful of real ones, chance would decide what is rare."""


def vectors(texts: Sequence[str]) -> csr_array:
    """One row of length 1 for each text (of 0 for one without a word), one column for each piece that occurs.

    Weights are 1 + ln(count) times 1 + ln((5 + n) / (5 + texts with the piece)). In single precision.
    """
    import numpy as np
    from scipy.sparse import csr_array

    columns: dict[str, int] = {}
    counted = [Counter(pieces(text)) for text in texts]
    indices = [columns.setdefault(piece, len(columns)) for counts in counted for piece in counts]
    ends = np.cumsum([0, *map(len, counted)])
    tf = 1 + np.log(np.fromiter((c for counts in counted for c in counts.values()), np.float32, len(indices)))
    df = np.bincount(indices, minlength=len(columns)) if indices else np.zeros(0)
    weights = tf * (1 + np.log((_PRIOR + len(texts)) / (_PRIOR + df)))[indices]
    shape = (len(texts), len(columns))
    rows: Any = csr_array((weights.astype(np.float32), np.asarray(indices, np.int32), ends), shape=shape)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(ends)).astype(np.float32)
    return rows


def pieces(text: str) -> Iterator[str]:
    """The pieces of a text: words in lower case, a space at each end, so that where a word begins and ends counts."""
    padded = f" {' '.join(text.lower().split())} "
    return (padded[at : at + SIZE] for at in range(len(padded) - SIZE + 1))
