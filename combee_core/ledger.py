"""The one ledger: every answer that was paid, by run. Unknown tokens or money stay unknown, which is not 0."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from combee_core.base import Noun, content_hash
from combee_core.calls import Receipt, Usage
from combee_core.ports import Store
from combee_core.saving import read_record, write_record

STAGES = ("rollout", "reflect", "curate", "merge")

_UNIT = 10**12
"""Money is added in whole millionths of a millionth of a dollar, so that a sum has no drift."""


class Spend(Noun):
    """A sum over receipts; None where nothing at all is known, `…_at_least` where some of it is not."""

    calls: int = 0
    tokens: int | None = 0
    tokens_at_least: bool = False
    cost: float | None = 0.0
    cost_at_least: bool = False


class Heading(Noun):
    """The first line of an object of receipts: how many requests were made since the last one, and in which
    invocation of the run."""

    invocation: str = ""
    requests: dict[str, int]


@dataclass
class _Book:
    """Requests and sums over receipts; of each receipt only a number is kept, so that it counts once."""

    requests: Counter[str] = field(default_factory=Counter)
    seen: set[int] = field(default_factory=set)
    tokens: int = 0
    known_tokens: int = 0
    missing_tokens: int = 0
    money: int = 0
    known_costs: int = 0

    def copy(self) -> _Book:
        return _Book(**{**vars(self), "requests": self.requests.copy(), "seen": self.seen.copy()})

    def add(self, number: int, usage: Usage) -> None:
        if number in self.seen:
            return
        self.seen.add(number)
        for tokens in (usage.input_tokens, usage.output_tokens):
            self.tokens += tokens or 0
            self.known_tokens += tokens is not None
            self.missing_tokens += tokens is None
        if usage.cost is not None:
            self.money += round(usage.cost * _UNIT)
            self.known_costs += 1

    @property
    def spend(self) -> Spend:
        calls = len(self.seen)
        return Spend(
            calls=calls,
            tokens=self.tokens if self.known_tokens or not calls else None,
            tokens_at_least=self.missing_tokens > 0,
            cost=self.money / _UNIT if self.known_costs or not calls else None,
            cost_at_least=self.known_costs < calls,
        )


def total(receipts: Iterable[Receipt]) -> Spend:
    """The sum. Tokens are input and output together, cost is in US dollars."""
    book = _Book()
    for number, receipt in enumerate(receipts):
        book.add(number, receipt.usage)
    return book.spend


@dataclass
class _Account:
    """One run: what this invocation did, everything ever paid as far as it was read, and what is not written yet."""

    invocation: str = ""
    now: _Book = field(default_factory=_Book)
    ever: _Book = field(default_factory=_Book)
    requests: Counter[str] = field(default_factory=Counter)
    receipts: list[Receipt] = field(default_factory=list)
    read: set[str] = field(default_factory=set)


class Ledger:
    """Requests and receipts by run; safe across threads. It keeps sums, and of each receipt a number of 64 bits.

    `flush` writes what has come since the last time as one object of lines, `runs/<run>/receipts/….jsonl`: so a run's
    total holds what other processes paid, for answers that came to nothing too. The client flushes every second, when
    it stops and at the end. A kill loses the bookkeeping of at most that second, and of rejected answers only: the
    record of an accepted one holds its receipt.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: dict[str, _Account] = {}
        self._lock = threading.RLock()
        self._writer = uuid.uuid4().hex
        self._written = 0

    def begin(self, run: str, invocation: str = "") -> bool:
        """Count from zero: a new invocation of `run`. False, and no change, if this one has begun already.

        Processes that share an invocation give it the same name; then each sees what the others have flushed.
        """
        with self._lock:
            account = self._account(run)
            if invocation and account.invocation == invocation:
                return False
            self.flush(run)
            account.invocation, account.now = invocation, _Book()
            account.read.clear()
            return True

    def asked(self, run: str, stage: str) -> None:
        """Count a request, whatever comes of it."""
        with self._lock:
            account = self._account(run)
            account.now.requests[stage] += 1
            account.requests[stage] += 1

    def paid(self, receipt: Receipt) -> None:
        """Note an answer that arrived."""
        number = _number(receipt)
        with self._lock:
            account = self._account(receipt.run)
            account.now.add(number, receipt.usage)
            account.ever.add(number, receipt.usage)
            account.receipts.append(receipt)

    def flush(self, run: str | None = None) -> None:
        """Write what is not written yet, of one run or of all; what raises `StoreError` is kept for the next time."""
        for each in [run] if run is not None else list(self._accounts):
            self._write(each)

    def calls(self, run: str) -> dict[str, int]:
        """Requests of this invocation by stage, every stage named."""
        return {**dict.fromkeys(STAGES, 0), **self._read(run).now.requests}

    def spend(self, run: str) -> Spend:
        """What this invocation has spent."""
        return self._read(run).now.spend

    def total(self, run: str, known: Iterable[Receipt] = ()) -> Spend:
        """Everything that `run` has ever paid, each answer once; `known` are receipts that were found elsewhere.

        A receipt that cannot be read counts as an answer of unknown cost.
        """
        self._read(run)
        with self._lock:
            book = self._account(run).ever.copy()
        for receipt in known:
            if receipt.run == run:
                book.add(_number(receipt), receipt.usage)
        return book.spend

    def _account(self, run: str) -> _Account:
        return self._accounts.setdefault(run, _Account())

    def _write(self, run: str) -> None:
        with self._lock:
            account = self._account(run)
            heading = Heading(invocation=account.invocation, requests=dict(account.requests))
            receipts, self._written = account.receipts, self._written + 1
            if not heading.requests and not receipts:
                return
            key = f"{_folder(run)}{self._writer}-{self._written}.jsonl"
            account.requests, account.receipts = Counter(), []
        try:
            self._store.create(key, b"".join(write_record(line) + b"\n" for line in (heading, *receipts)))
        except BaseException:
            with self._lock:
                account.requests.update(heading.requests)
                account.receipts[:0] = receipts
            raise

    def _read(self, run: str) -> _Account:
        """The account, with what other processes have flushed by now; each of their objects is read once."""
        account = self._account(run)
        for key in self._store.list(_folder(run)):
            if self._writer in key or key in account.read:
                continue
            blob = self._store.read(key)
            with self._lock:
                account.read.add(key)
                _take_in(account, key, blob.data if blob else b"")
        return account


def _take_in(account: _Account, key: str, data: bytes) -> None:
    is_now = False
    for place, line in enumerate(data.splitlines()):
        heading = None if place else read_record(Heading, line)
        if heading:
            is_now = bool(account.invocation) and heading.invocation == account.invocation
            account.now.requests.update(heading.requests if is_now else {})
            continue
        receipt = read_record(Receipt, line)
        number, usage = (_number(receipt), receipt.usage) if receipt else (_hashed(key, place), Usage())
        for book in (account.ever, account.now) if is_now else (account.ever,):
            book.add(number, usage)


def _folder(run: str) -> str:
    return f"runs/{run}/receipts/"


def _number(receipt: Receipt) -> int:
    twin = ("hedge",) if receipt.hedge else ()
    return _hashed(receipt.stage, receipt.item, receipt.prompt_sha, receipt.attempt, *twin)


def _hashed(*parts: str | int) -> int:
    return int(content_hash(*parts)[:16], 16)
