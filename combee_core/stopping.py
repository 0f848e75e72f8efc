"""An end to new calls that reaches those that still wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from combee_core.errors import CombeeError


class Stop:
    """Whether new calls are refused, and why. Set from any thread; whoever waits on an event loop is woken."""

    def __init__(self) -> None:
        self._error: CombeeError | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def is_set(self) -> bool:
        """Whether new calls are refused."""
        return self._error is not None

    def set(self, error: CombeeError) -> None:
        """Refuse every call from now on with a copy of `error`."""
        self._error = error
        for waiting in list(self._waiting):
            waiting.get_loop().call_soon_threadsafe(_wake, waiting)

    def set_first(self, error: CombeeError) -> None:
        """The same, but where calls are refused already, what they are refused with stays."""
        if self._error is None:
            self.set(error)

    def clear(self) -> None:
        """Refuse no longer."""
        self._error = None

    def check(self) -> None:
        """Raise what was set."""
        if self._error is not None:
            # A copy: one exception raised from many tasks would collect all their tracebacks.
            raise type(self._error)(*self._error.args)

    async def wait(self, awaited: Awaitable[Any]) -> None:
        """Wait for `awaited`; a stop ends it and is raised at once."""
        waited_for = asyncio.ensure_future(awaited)
        stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Before the check: a stop that another thread sets in between is then seen by one of the two.
        self._waiting.add(stopped)
        try:
            self.check()
            await asyncio.wait([waited_for, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(stopped)
            waited_for.cancel()
        self.check()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
