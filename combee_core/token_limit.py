"""How large a batch may be before the groups of the paper's form no longer fit into one curate call."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from combee_core.config import RunSettings
from combee_core.records import State
from combee_core.shuffle import PAPER_UP_TO, copies_of


def token_limit(states: Iterable[State], settings: RunSettings, limit: int | None) -> int | None:
    """The largest batch size whose groups take at most `limit` input tokens a call; None where nothing binds.

    Bounded groups do not grow with the batch, so that where `auto` makes them a larger batch needs no limit.

    A call's tokens are read as a fixed part and a part for each entry, from the smallest and the largest measured
    batch; a group holds copies·√n entries.
    """
    if limit is None or settings.grouping == "bounded":
        return None
    copies = copies_of(settings, bounded=False)
    sizes = sorted(found for state in states if (found := _call(state, copies)))
    if len(sizes) < 2 or sizes[0][0] == sizes[-1][0]:
        return None
    (few, least), (many, most) = sizes[0], sizes[-1]
    each = (most - least) / (many - few)
    room = limit - (most - each * many)
    if each <= 0:
        return None
    most = max(1, int((max(room, 0) / each / copies) ** 2))
    return None if settings.grouping == "auto" and most >= PAPER_UP_TO else most


def _call(state: State, copies: int) -> tuple[float, float] | None:
    """Entries and input tokens of a batch's mean curate call; None without calls of known size."""
    curate = [r for r in state.receipts if r.stage == "curate" and r.accepted]
    tokens = [r.usage.input_tokens for r in curate if r.usage.input_tokens]
    entries = sum(fate.fate == "learned" for fate in state.fates)
    if not tokens or not entries or not state.groups:
        return None
    return (copies if state.groups > 1 else 1) * entries / len(curate), fmean(tokens)
