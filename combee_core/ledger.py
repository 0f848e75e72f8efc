"""The one ledger: every answer that was paid, by run. Unknown tokens or money stay unknown, which is not 0."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from combee_core.base import Noun
from combee_core.calls import Receipt, Usage
from combee_core.config import STAGES
from combee_core.ports import Store
from combee_core.saving import read_record, write_record

_ANOTHER = "?"
"""In the place of an invocation's name where another process gave none: it is not this one's."""

_UNIT = 10**12
"""Money is added in whole millionths of a millionth of a dollar, so that a sum has no drift."""


class Spend(Noun):
    """A sum over receipts, in tokens of input and output and in US dollars; None where nothing at all is known,
    `…_at_least` where some of it is not."""

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
    """Requests and sums over receipts."""

    requests: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    accepted: int = 0
    tokens: int = 0
    known_tokens: int = 0
    missing_tokens: int = 0
    money: int = 0
    known_costs: int = 0

    def add(self, usage: Usage, *, accepted: bool = False) -> None:
        self.calls += 1
        self.accepted += accepted
        for tokens in (usage.input_tokens, usage.output_tokens):
            self.tokens += tokens or 0
            self.known_tokens += tokens is not None
            self.missing_tokens += tokens is None
        if usage.cost is not None:
            self.money += round(usage.cost * _UNIT)
            self.known_costs += 1

    @property
    def spend(self) -> Spend:
        return Spend(
            calls=self.calls,
            tokens=self.tokens if self.known_tokens or not self.calls else None,
            tokens_at_least=self.missing_tokens > 0,
            cost=self.money / _UNIT if self.known_costs or not self.calls else None,
            cost_at_least=self.known_costs < self.calls,
        )


@dataclass
class _Account:
    """One run: what each invocation did as far as it was read, everything ever paid, and what is not written yet.

    Of each receipt a number is kept, by which one that is found elsewhere is known again.
    """

    invocation: str = ""
    books: defaultdict[str, _Book] = field(default_factory=lambda: defaultdict(_Book))
    ever: _Book = field(default_factory=_Book)
    numbers: set[int] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    receipts: list[bytes] = field(default_factory=list)
    unwritten: dict[str, bytes] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    @property
    def now(self) -> _Book:
        return self.books[self.invocation]

    def add(self, number: int, usage: Usage, invocation: str, *, accepted: bool = False) -> None:
        self.numbers.add(number)
        for book in (self.ever, self.books[invocation]):
            book.add(usage, accepted=accepted)


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
            account.invocation = invocation
            if not invocation:
                account.books.pop("", None)
            return True

    def asked(self, run: str, stage: str) -> None:
        """Count a request, whatever comes of it."""
        with self._lock:
            account = self._account(run)
            account.now.requests[stage] += 1
            account.requests[stage] += 1

    def paid(self, receipt: Receipt) -> None:
        """Note an answer that arrived."""
        line = write_record(receipt)
        with self._lock:
            account = self._account(receipt.run)
            account.add(_hashed(line), receipt.usage, account.invocation, accepted=receipt.accepted)
            account.receipts.append(line)

    def flush(self, run: str | None = None) -> None:
        """Write what is not written yet, of one run or of all; what raises `StoreError` is kept for the next time."""
        for each in [run] if run is not None else list(self._accounts):
            self._write(each)

    def calls(self, run: str) -> dict[str, int]:
        """Requests of this invocation by stage, every stage named."""
        account = self._read(run)
        with self._lock:
            return {**dict.fromkeys(STAGES, 0), **account.now.requests}

    def accepted(self, run: str) -> int:
        """Answers that this invocation has paid for and accepted; those found in the store are not among them."""
        account = self._read(run)
        with self._lock:
            return account.now.accepted

    def spend(self, run: str) -> Spend:
        """What this invocation has spent."""
        account = self._read(run)
        with self._lock:
            return account.now.spend

    def total(self, run: str, known: Iterable[Receipt] = ()) -> Spend:
        """Everything that `run` has ever paid; `known` are receipts that were found elsewhere, copies of what is in the
        ledger among them, which count once.

        A receipt that cannot be read counts as an answer of unknown cost.
        """
        account = self._read(run)
        with self._lock:
            book, counted = replace(account.ever), set[int]()
        for receipt in known:
            number = _number(receipt) if receipt.run == run else None
            if number is not None and number not in account.numbers and number not in counted:
                counted.add(number)
                book.add(receipt.usage)
        return book.spend

    def _account(self, run: str) -> _Account:
        return self._accounts.setdefault(run, _Account())

    def _write(self, run: str) -> None:
        with self._lock:
            account = self._account(run)
            self._close_object(run, account)
            unwritten = dict(account.unwritten)
        for key, data in unwritten.items():
            # Under the same name until the store says yes: what it wrote before it fell silent is not written twice.
            self._store.create(key, data)
            with self._lock:
                account.unwritten.pop(key, None)

    def _close_object(self, run: str, account: _Account) -> None:
        if not account.requests and not account.receipts:
            return
        self._written += 1
        heading = Heading(invocation=account.invocation, requests=dict(account.requests))
        lines = [write_record(heading), *account.receipts, b""]
        account.unwritten[f"{_folder(run)}{self._writer}-{self._written}.jsonl"] = b"\n".join(lines)
        account.requests, account.receipts = Counter(), []

    def _read(self, run: str) -> _Account:
        """The account, with what other processes have flushed by now; each of their objects is read once."""
        account = self._account(run)
        for key in self._store.list(_folder(run)):
            if self._writer in key or key in account.read:
                continue
            blob = self._store.read(key)
            with self._lock:
                # Another thread may have read it meanwhile.
                if key not in account.read:
                    account.read.add(key)
                    _take_in(account, key, blob.data if blob else b"")
        return account


def _take_in(account: _Account, key: str, data: bytes) -> None:
    invocation = _ANOTHER
    for place, line in enumerate(data.splitlines()):
        heading = None if place else read_record(Heading, line)
        if heading:
            invocation = heading.invocation or _ANOTHER
            account.books[invocation].requests.update(heading.requests)
            continue
        receipt = read_record(Receipt, line)
        number, usage = (_number(receipt), receipt.usage) if receipt else (_hashed(f"{key} {place}".encode()), Usage())
        account.add(number, usage, invocation, accepted=bool(receipt and receipt.accepted))


def _folder(run: str) -> str:
    return f"runs/{run}/receipts/"


def _number(receipt: Receipt) -> int:
    """Of all that it says, as it is written: what was paid for the same attempt twice is no copy."""
    return _hashed(write_record(receipt))


def _hashed(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8])
