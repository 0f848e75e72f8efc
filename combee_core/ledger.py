"""The one ledger: every answer that was paid, by run. Unknown tokens or money stay unknown, which is not 0."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from combee_core.base import Noun, content_hash
from combee_core.calls import Receipt
from combee_core.ports import Store
from combee_core.saving import read_record, write_record

STAGES = ("rollout", "reflect", "curate", "merge")


class Spend(Noun):
    """A sum over receipts; None where nothing at all is known, `…_at_least` where some of it is not."""

    calls: int = 0
    tokens: int | None = 0
    tokens_at_least: bool = False
    cost: float | None = 0.0
    cost_at_least: bool = False


def total(receipts: Iterable[Receipt]) -> Spend:
    """The sum. Tokens are input and output together, cost is in US dollars."""
    usages = [receipt.usage for receipt in receipts]
    tokens = [number for u in usages for number in (u.input_tokens, u.output_tokens)]
    costs = [u.cost for u in usages]
    known_tokens, known_costs = [n for n in tokens if n is not None], [c for c in costs if c is not None]
    return Spend(
        calls=len(usages),
        tokens=sum(known_tokens) if known_tokens or not usages else None,
        tokens_at_least=None in tokens,
        cost=round(math.fsum(known_costs), 10) if known_costs or not usages else None,
        cost_at_least=None in costs,
    )


class Ledger:
    """Requests and receipts by run; safe across threads.

    Each receipt is also written to `runs/<run>/receipts/`, so that a run's total holds what earlier processes
    paid, for answers that came to nothing too.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: dict[str, Counter[str]] = defaultdict(Counter)
        self._now: dict[str, dict[str, Receipt]] = defaultdict(dict)
        self._lock = threading.Lock()

    def begin(self, run: str) -> None:
        """A new invocation of `run`: requests and spending count from zero."""
        with self._lock:
            self._requests.pop(run, None)
            self._now.pop(run, None)

    def asked(self, run: str, stage: str) -> None:
        """Count a request, whatever comes of it."""
        with self._lock:
            self._requests[run][stage] += 1

    def paid(self, receipt: Receipt) -> None:
        """Note and save an answer that arrived."""
        with self._lock:
            self._now[receipt.run][_id(receipt)] = receipt
        self._store.create(f"{_folder(receipt.run)}{_id(receipt)}.json", write_record(receipt))

    def calls(self, run: str) -> dict[str, int]:
        """Requests of this invocation by stage, every stage named."""
        with self._lock:
            return {**dict.fromkeys(STAGES, 0), **self._requests[run]}

    def spend(self, run: str) -> Spend:
        """What this invocation has spent."""
        with self._lock:
            return total(self._now[run].values())

    def receipts(self, run: str, known: Iterable[Receipt] = ()) -> tuple[Receipt, ...]:
        """Everything that `run` has ever paid, each answer once. What is among `known` is not read again.

        A receipt that cannot be read counts as an answer of unknown cost.
        """
        with self._lock:
            now = dict(self._now[run])
        held = {**{_id(r): r for r in known if r.run == run}, **now}
        return tuple({**self._saved(run, held), **held}.values())

    def _saved(self, run: str, held: Mapping[str, Receipt]) -> dict[str, Receipt]:
        folder, found = _folder(run), {}
        for key in self._store.list(folder):
            name = key.removeprefix(folder).removesuffix(".json")
            blob = None if name in held else self._store.read(key)
            if blob:
                found[name] = read_record(Receipt, blob.data) or _unreadable(run, name)
        return found


def _folder(run: str) -> str:
    return f"runs/{run}/receipts/"


def _id(receipt: Receipt) -> str:
    return content_hash(receipt.stage, receipt.item, receipt.prompt_sha, receipt.attempt)[:32]


def _unreadable(run: str, name: str) -> Receipt:
    return Receipt(stage="", item=name, prompt_sha="", attempt=0, accepted=False, model="", run=run)
