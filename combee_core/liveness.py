"""Is the model still there? One that answers nobody is looked at long before the calls under way time out."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from combee_core.errors import ModelError, ModelFailing
from combee_core.events import event

QUIET = 15.0
"""Seconds without an answer, while calls are under way, after which a cheap look is taken."""

GONE = 35.0
"""Seconds without an answer after which nobody is there, where looks fail too."""

LOOK = 7.5
"""Seconds that a look may take."""

PAUSE = 5.0
"""Seconds from a look that failed to the next."""

_LEAST = 0.1
"""Seconds: what is left by an error of rounding is no time that a clock could show."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Liveness:
    """Ends the calls under way of a model that for `GONE` seconds answers neither them nor a `look`.

    `look` is a preflight, which a slow model passes as long as its server answers anything while it works. `heard` is
    the clock's time of the last answer of any kind, errors included.
    """

    name: str
    look: Callable[[], Awaitable[None]]
    clock: Callable[[], float]
    heard: float = -math.inf
    _since: float = -math.inf
    _calls: set[asyncio.Timeout] = field(default_factory=set)
    _watching: asyncio.Task[None] | None = None
    _why: str = ""

    def hear(self) -> None:
        """An answer came, whatever it is worth."""
        self.heard = self.clock()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """While a call is under way. Raises `ModelFailing` where it is ended because nobody is there."""
        end = asyncio.timeout(None)
        try:
            async with end:
                self._begin(end)
                try:
                    yield
                finally:
                    self._end(end)
        except TimeoutError as error:
            if end.expired():
                raise ModelFailing(self._why) from error
            raise

    @property
    def _silence(self) -> float:
        return self.clock() - max(self.heard, self._since)

    def _begin(self, end: asyncio.Timeout) -> None:
        if not self._calls:
            self._since = self.clock()
        self._calls.add(end)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    def _end(self, end: asyncio.Timeout) -> None:
        self._calls.discard(end)
        if not self._calls and self._watching:
            # Forgotten at once: the next call may begin before this watch has come to its end.
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        while self._calls:
            if (left := QUIET - self._silence) > 0:
                await asyncio.sleep(max(left, _LEAST))
            elif (why := await self._failed_look()) is None:
                self._since = self.clock()
            elif self._silence < GONE:
                await asyncio.sleep(PAUSE)
            elif self._calls:
                self._end_all(why)

    async def _failed_look(self) -> str | None:
        """What is wrong with the model; None where it answers."""
        try:
            async with asyncio.timeout(LOOK):
                await self.look()
        except TimeoutError:
            return f"{self.name}: no answer to a cheap request either"
        except ModelError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001  a look that breaks is no sign of life, and nobody awaits this task
            return f"{self.name}: {type(error).__name__}: {error}"
        return None

    def _end_all(self, why: str) -> None:
        silent = f"calls under way ({len(self._calls)}) have had no answer for {self._silence:.0f} s"
        self._why = f"{why}; {silent}; --breaker 0 waits for as long as --timeout says"
        event(_log, logging.WARNING, "silent", self._why, calls=len(self._calls))
        for end in self._calls:
            end.reschedule(asyncio.get_running_loop().time())
        self._calls.clear()
