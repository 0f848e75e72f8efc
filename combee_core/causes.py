"""Why many calls failed, told in one sentence."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from combee_core.base import clip
from combee_core.errors import CombeeError
from combee_core.events import some

_SHOWN = 4
_LONGEST = 200
_VARIABLE = re.compile(
    r"; its beginning is in the store: \S+|\b(?:req|chatcmpl|msg)[-_]\w+|\b[0-9a-f]{8}[0-9a-f-]{4,}\b|\b\d{6,}\b"
)
"""Ids of requests, places in the store and the like, which would make every cause another one."""


def grouped(causes: Sequence[str]) -> str:
    """Causes by how often each occurs: `17 × ModelFault: …; 3 × …`."""
    counts = Counter(causes).most_common()
    more = sum(count for _, count in counts[_SHOWN:])
    shown = [f"{count} × {cause}" for cause, count in counts[:_SHOWN]]
    return "; ".join([*shown, f"{more} × others"] if more else shown)


def by_cause(failed: Sequence[tuple[str, str]]) -> list[str]:
    """Items that failed, each with its reason, as sentences that say a reason once: `a, b failed: …`, `c failed: …`."""
    together = defaultdict[str, list[tuple[str, str]]](list)
    for name, why in failed:
        together[_bare(why)].append((name, why))
    return [
        f"{', '.join(some([name for name, _ in those]))} failed: {bare if len(those) > 1 else those[0][1]}"
        for bare, those in together.items()
    ]


def cause(error: CombeeError) -> str:
    """An error in one line, without what differs from call to call."""
    return plain(f"{type(error).__name__}: {error}")


def plain(reason: str) -> str:
    """A reason in one line, without what differs from call to call."""
    return clip(_bare(reason), _LONGEST)


def _bare(reason: str) -> str:
    return _VARIABLE.sub("…", " ".join(reason.split()))
