"""How many calls may be in flight, and how many requests and tokens a minute.

The number in flight follows what the provider shows: while callers wait and answers stay quick it doubles in each round
trip, after the first cut it grows by a tenth in each; a 429 or 529 halves it, slow answers take a fifth.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

from combee_core.base import estimate
from combee_core.calls import Request, Usage
from combee_core.config import ModelSettings
from combee_core.stopping import Stop

MINUTE = 60.0
WINDOW = 32
"""Answers of one stage that are judged together, or a quarter of what may be in flight, where that is more."""

STEADY = 1.5
"""Times the best window's median up to which the number still grows."""

SLOW = 2.0
"""Times the best window's median above which it falls."""

NOISE = 0.1
"""Seconds by which a median may always differ."""

FORGET = 1.002
"""By how much the best median is raised with each window, so that longer prompts do not count as a slow provider."""

CUT_BUSY, CUT_SLOW = 0.5, 0.8
LOOK = 1.0
"""Seconds after which a caller that waits for a quota looks again: answers may have taken less than was reserved."""

GUESSED_OUTPUT = 500
"""Tokens that an answer is taken to have before a stage has had one."""

Clock = Callable[[], float]


@dataclass
class _Window:
    """The latencies of one stage since it was last judged."""

    seconds: list[float] = field(default_factory=list)
    best: float = math.inf
    is_steady: bool = True

    def judge(self) -> float:
        """The window's median over the best one's; the next window begins."""
        middle = median(self.seconds)
        self.best = min(self.best * FORGET, middle)
        self.seconds.clear()
        self.is_steady = self.is_quick(middle)
        return middle / (self.best + NOISE)

    def is_quick(self, seconds: float) -> bool:
        """True for a latency with which more calls may be tried."""
        return seconds <= STEADY * (self.best + NOISE)


class Slots:
    """How many calls may be in flight: from `start` or `most`, whichever is less, at most `most`, never below one.

    While callers wait, each quick answer adds one, which doubles the number in a round trip; after the first cut a
    round trip adds a tenth. A 429 or 529 halves it, and a window whose median is more than `SLOW` times the best takes
    a fifth; answers and windows of more than `STEADY` times the best add nothing. Only what was sent after the last
    cut counts, so that one round trip cuts once.
    """

    def __init__(self, start: int, most: int) -> None:
        self._size = float(min(start, most))
        self._most = most
        self._windows: defaultdict[str, _Window] = defaultdict(_Window)
        self._enough = max(WINDOW, self.allowed // 4)
        self.cuts = 0

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now."""
        return int(self._size)

    def answered(self, stage: str, seconds: float, *, cuts: int, queued: bool) -> None:
        """An answer came; `cuts` as it was when the request was sent, `queued` if callers wait."""
        if cuts != self.cuts:
            return
        window = self._windows[stage]
        if queued and window.is_steady and window.is_quick(seconds):
            self._size = min(self._most, self._size + (0.1 if self.cuts else 1.0))
        window.seconds.append(seconds)
        if len(window.seconds) < self._enough:
            return
        self._enough = max(WINDOW, self.allowed // 4)
        if window.judge() > SLOW:
            self._cut(CUT_SLOW)

    def busy(self, *, cuts: int) -> None:
        """A 429 or 529 came."""
        if cuts == self.cuts:
            self._cut(CUT_BUSY)

    def _cut(self, to: float) -> None:
        self._size = max(1.0, self._size * to)
        self.cuts += 1
        for window in self._windows.values():
            window.seconds.clear()
            window.is_steady = True


@dataclass(eq=False)
class Booking:
    """An amount that counts against a quota for a minute."""

    at: float
    amount: int


class Quota:
    """At most `limit` in any sixty seconds; an amount above that has a minute to itself."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._booked: deque[Booking] = deque()
        self._total = 0

    def pause(self, amount: int) -> float:
        """Seconds until `amount` may be booked; 0 for now."""
        now = self._clock()
        while self._booked and self._booked[0].at + MINUTE <= now:
            self.correct(self._booked.popleft(), 0)
        over = self._total + amount - self._limit
        until = now
        for booking in self._booked:
            if over <= 0:
                break
            over, until = over - booking.amount, booking.at + MINUTE
        return until - now

    def book(self, amount: int) -> Booking:
        """Take `amount` from now on."""
        booking = Booking(self._clock(), amount)
        self._booked.append(booking)
        self._total += amount
        return booking

    def correct(self, booking: Booking, amount: int) -> None:
        """What was booked turned out to be `amount`; a booking whose minute is over counts no more."""
        if booking.at + MINUTE <= self._clock():
            amount = 0
        self._total += amount - booking.amount
        booking.amount = amount


@dataclass
class Forecast:
    """Tokens that a request will take: its input by estimate, its output as the stage's mean so far."""

    _written: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def tokens(self, request: Request) -> int:
        """Of input and output together."""
        answers, written = self._written[request.prompt.stage]
        return estimate(request.prompt.text) + (written // answers if answers else GUESSED_OUTPUT)

    def learn(self, stage: str, usage: Usage) -> None:
        """Take an answer's true output into the mean."""
        if usage.output_tokens is not None:
            seen = self._written[stage]
            seen[0], seen[1] = seen[0] + 1, seen[1] + usage.output_tokens


@dataclass(frozen=True)
class Turn:
    """One call's leave to be sent: when, after how many cuts, and what it has reserved."""

    stage: str
    sent: float
    cuts: int
    tokens: Booking | None


class Gate:
    """What every request passes: in the order of asking, with a slot, and within RPM and TPM.

    Of several processes each takes its part of all limits, rounded down, at least one. Whoever waits holds no slot.
    Once `stop` is set, all who wait and all who come are refused, and nothing is booked for them.
    """

    def __init__(self, settings: ModelSettings, clock: Clock, sleep: Callable[[float], Awaitable[None]]) -> None:
        def part(limit: int) -> int:
            return max(1, limit // settings.processes)

        self.slots = Slots(part(settings.concurrency), part(settings.max_concurrency))
        self.stop = Stop()
        self._clock, self._sleep = clock, sleep
        self._requests = Quota(part(settings.rpm), clock) if settings.rpm else None
        self._tokens = Quota(part(settings.tpm), clock) if settings.tpm else None
        self._forecast = Forecast()
        self._head = asyncio.Lock()
        self._room: asyncio.Future[None] | None = None
        self._queued = self._in_flight = 0

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[Turn]:
        """Wait for this request's turn; the slot is held while inside. Raises what `stop` is set to."""
        self._queued += 1
        try:
            # Only the first in the line looks at the quotas, so nobody overtakes and nobody wakes in vain.
            async with self._head:
                turn = await self._next(request)
        finally:
            self._queued -= 1
        try:
            yield turn
        finally:
            self._in_flight -= 1
            self._make_room()

    async def _next(self, request: Request) -> Turn:
        self.stop.check()
        tokens = self._forecast.tokens(request) if self._tokens else 0
        while pause := self._pause(tokens):
            await self.stop.wait(self._sleep(min(pause, LOOK)))
        while self._in_flight >= self.slots.allowed:
            self._room = asyncio.get_running_loop().create_future()
            await self.stop.wait(self._room)
        self._in_flight += 1
        if self._requests:
            self._requests.book(1)
        booking = self._tokens.book(tokens) if self._tokens else None
        return Turn(request.prompt.stage, self._clock(), self.slots.cuts, booking)

    def _pause(self, tokens: int) -> float:
        requests = self._requests.pause(1) if self._requests else 0.0
        return max(requests, self._tokens.pause(tokens) if self._tokens else 0.0)

    def _make_room(self) -> None:
        if self._room and not self._room.done() and self._in_flight < self.slots.allowed:
            self._room.set_result(None)

    def answered(self, turn: Turn, usage: Usage) -> None:
        """An answer came: what it really took replaces what was reserved, and the slots take notice of its latency."""
        self.slots.answered(turn.stage, self._clock() - turn.sent, cuts=turn.cuts, queued=self._queued > 0)
        self._make_room()
        self._forecast.learn(turn.stage, usage)
        if usage.input_tokens is not None and usage.output_tokens is not None:
            self._correct(turn, usage.input_tokens + usage.output_tokens)

    def busy(self, turn: Turn) -> None:
        """A 429 or 529 came: the tokens were not used, but the request counts."""
        self.slots.busy(cuts=turn.cuts)
        self._correct(turn, 0)

    def _correct(self, turn: Turn, tokens: int) -> None:
        if self._tokens and turn.tokens:
            self._tokens.correct(turn.tokens, tokens)
