"""The one purse of a client: caps of a run and of a day, reserved before each call and settled after it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from math import inf

from combee_core.base import Noun
from combee_core.caps import Breach, Cap, breach_of, caps_of
from combee_core.config import Budget
from combee_core.errors import BudgetSpent
from combee_core.ports import Store
from combee_core.spent import NOTHING, Share, Spent, of_day, of_run, read_shares, together, write_share
from combee_core.stopping import Stop

LOOK = 3.0
"""Seconds after which the records of other processes and runs are read again, where a cap depends on them."""


class Limits(Noun):
    """The caps of a run, those of a day in UTC, and how many processes share what is left of both."""

    run: Budget = Budget()
    day: Budget = Budget()
    processes: int = 1

    @property
    def caps(self) -> tuple[Cap, ...]:
        """All of them."""
        return (*caps_of(self.run), *caps_of(self.day, of_day=True))


@dataclass
class _Account:
    """One run in this process: what it settled, in all and by day, what is reserved, and what is known of others.

    `hours` are the clock's readings between which it worked on a day; `at_look` is what it had settled, in all and on
    the day, when others were looked at.
    """

    run: str
    name: str
    invocation: str
    began: float
    own: Spent = NOTHING
    by_day: defaultdict[date, Spent] = field(default_factory=lambda: defaultdict(Spent))
    hours: dict[date, tuple[float, float]] = field(default_factory=dict)
    holds: int = 0
    held: Spent = NOTHING
    elsewhere: Spent = NOTHING
    elsewhere_today: Spent = NOTHING
    at_look: tuple[Spent, Spent] = (NOTHING, NOTHING)
    looked: float = -inf
    day: date | None = None
    is_written: bool = True

    def reserve(self, most: Spent) -> None:
        self.holds, self.held = self.holds + 1, self.held + most

    def settle(self, most: Spent, paid: Spent, day: date) -> None:
        self.holds -= 1
        self.held = self.held - most if self.holds else NOTHING
        self.own, self.by_day[day] = self.own + paid, self.by_day[day] + paid
        self.is_written = False

    def tick(self, day: date, clock: float) -> None:
        """Take notice of the time, by day: an invocation may go on past midnight."""
        first, _ = self.hours.get(day, (clock if self.hours else self.began, clock))
        self.hours[day] = (first, clock)

    def seconds(self, day: date) -> float:
        first, last = self.hours[day]
        return last - first


@dataclass(eq=False)
class Hold:
    """What is reserved for one request. Where nothing is `paid` when it ends, one that was sent counts as a call."""

    account: _Account
    most: Spent
    is_sent: bool = False
    paid: Spent | None = None


class Purse:
    """Lets a request through if what it may take at most still fits under every cap.

    While others are in flight whose reservations may turn out too large, it waits for them. What other processes and
    earlier invocations spent is read from the store when a run begins and every `LOOK` seconds; of several processes
    each takes its part of what was left then. `clock` is in seconds, `now` the wall clock.
    """

    def __init__(
        self, store: Store, limits: Limits, clock: Callable[[], float], now: Callable[[], datetime] | None = None
    ) -> None:
        self._store, self._limits, self._clock = store, limits, clock
        self.now = now or (lambda: datetime.now(UTC))
        self._caps = limits.caps
        self._accounts: dict[str, _Account] = {}
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_capped(self) -> bool:
        """Whether there is any cap to be kept."""
        return bool(self._caps)

    @property
    def counts_money(self) -> bool:
        """Whether a cap in money has to be kept."""
        return any(cap.what == "cost" for cap in self._caps)

    def begin(self, run: str, invocation: str = "") -> None:
        """Start an invocation of `run`; its minutes count from now."""
        name = f"{invocation or 'unnamed'}-{uuid.uuid4().hex[:12]}"
        self._accounts[run] = _Account(run, name, invocation, self._clock())

    @asynccontextmanager
    async def hold(self, run: str, most: Spent, stop: Stop) -> AsyncIterator[Hold]:
        """Reserve `most` while inside; then what was `paid` counts in its place.

        Raises `BudgetSpent` where it does not fit, and what `stop` is set to while it waits.
        """
        if run not in self._accounts:
            self.begin(run)
        account = self._accounts[run]
        if self._caps:
            await self._make_room(account, most, stop)
        account.reserve(most)
        hold = Hold(account, most)
        try:
            yield hold
        finally:
            unpaid = Spent(calls=1) if hold.is_sent else NOTHING
            self._settle(hold, unpaid if hold.paid is None else hold.paid)

    def send(self, hold: Hold) -> None:
        """The request is sent now: from here on it counts. Raises `BudgetSpent` if its turn came after the time."""
        breach = self._breach(hold.account, NOTHING)
        if breach and breach.is_over:
            raise _spent(breach)
        hold.is_sent = True

    def flush(self) -> None:
        """Write what has changed since the last time. Raises `StoreError`; then the next time writes it."""
        for account in list(self._accounts.values()):
            if not account.is_written:
                account.is_written = True
                try:
                    self._write(account)
                except BaseException:
                    account.is_written = False
                    raise

    async def _make_room(self, account: _Account, most: Spent, stop: Stop) -> None:
        stop.check()
        if self._clock() - account.looked >= LOOK or account.day != self._today():
            await asyncio.to_thread(self._look, account)
        is_fresh = False
        while breach := self._breach(account, most):
            if account.holds and not breach.is_over:
                await stop.wait(self._next_settled())
                is_fresh = False
            elif is_fresh:
                raise _spent(breach)
            else:
                # Others may have taken less than they had reserved when they were looked at.
                await asyncio.to_thread(self._look, account)
                is_fresh = True

    def _breach(self, account: _Account, more: Spent) -> Breach | None:
        """The first cap that does not let `more` through."""
        if not self._caps:
            return None
        today = self._today()
        account.tick(today, self._clock())
        seconds = {False: self._clock() - account.began, True: account.seconds(today)}
        sums = {
            False: (account.own, account.elsewhere, account.at_look[0]),
            True: (account.by_day[today], account.elsewhere_today, account.at_look[1]),
        }
        for cap in self._caps:
            own, others, before = sums[cap.of_day]
            timed = own.model_copy(update={"seconds": seconds[cap.of_day]})
            found = breach_of(cap, timed, others, before, account.held + more, self._limits.processes)
            if found:
                return found._replace(more=more)
        return None

    def _settle(self, hold: Hold, paid: Spent) -> None:
        with self._lock:
            hold.account.settle(hold.most, paid, self._today())
            hold.account.tick(self._today(), self._clock())
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _next_settled(self) -> asyncio.Future[None]:
        """Done when a reservation is settled from now on: what is settled before anyone waits must not be missed."""
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    def _look(self, account: _Account) -> None:
        """Read what others have spent."""
        day = self._today()
        if self._limits.run != Budget():
            shares = read_shares(self._store, of_run(account.run), _run_key(account))
            account.elsewhere = together(shares, invocation=account.invocation)
        if self._limits.day != Budget():
            account.elsewhere_today = together(read_shares(self._store, of_day(day), _day_key(account, day)))
        account.at_look = (account.own, account.by_day[day])
        account.looked, account.day = self._clock(), day

    def _write(self, account: _Account) -> None:
        with self._lock:
            today = self._today()
            account.tick(today, self._clock())
            days = {day: account.by_day[day] + Spent(seconds=account.seconds(day)) for day in account.hours}
            days[today] += account.held
        for day, spent in days.items():
            write_share(self._store, _day_key(account, day), _share(account, spent))
        write_share(self._store, _run_key(account), _share(account, sum(days.values(), NOTHING)))

    def _today(self) -> date:
        return self.now().astimezone(UTC).date()


def _spent(breach: Breach) -> BudgetSpent:
    return BudgetSpent(breach.sentence, "budget", breach.cap.option)


def _share(account: _Account, spent: Spent) -> Share:
    return Share(run=account.run, invocation=account.invocation, spent=spent)


def _run_key(account: _Account) -> str:
    return f"{of_run(account.run)}{account.name}.json"


def _day_key(account: _Account, day: date) -> str:
    return f"{of_day(day)}{account.run}-{account.name}.json"
