"""The one ledger: every call that was paid, by run and stage. Unknown tokens or money stay unknown."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

from combee_core.types import Noun, Receipt

STAGES = ("rollout", "reflect", "curate", "merge")


class Spend(Noun):
    """A sum over receipts. `at_least` is True when some call's tokens or price are unknown."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    at_least: bool = False

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


def total(receipts: Iterable[Receipt]) -> Spend:
    """The sum; `cost` is None when no price at all is known."""
    usages = [receipt.usage for receipt in receipts]
    costs = [u.cost for u in usages if u.cost is not None]
    unknown = any(None in (u.input_tokens, u.output_tokens, u.cost) for u in usages)
    return Spend(
        calls=len(usages),
        input_tokens=sum(u.input_tokens or 0 for u in usages),
        output_tokens=sum(u.output_tokens or 0 for u in usages),
        cost=round(sum(costs), 10) if costs or not usages else None,
        at_least=unknown,
    )


class Ledger:
    """Receipts of this process, by run; safe across threads."""

    def __init__(self) -> None:
        self._receipts: dict[str, list[Receipt]] = defaultdict(list)
        self._requests: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(STAGES, 0))
        self._lock = threading.Lock()

    def asked(self, run: str, stage: str) -> None:
        """Count a request, whatever comes of it."""
        with self._lock:
            self._requests[run][stage] += 1

    def paid(self, receipt: Receipt) -> None:
        """Note an answer that arrived."""
        with self._lock:
            self._receipts[receipt.run].append(receipt)

    def calls(self, run: str) -> dict[str, int]:
        """Requests by stage."""
        with self._lock:
            return dict(self._requests[run])

    def receipts(self, run: str) -> tuple[Receipt, ...]:
        """Every answer that arrived."""
        with self._lock:
            return tuple(self._receipts[run])

    def spend(self, run: str) -> Spend:
        """What the run has spent in this process."""
        with self._lock:
            return total(self._receipts[run])
