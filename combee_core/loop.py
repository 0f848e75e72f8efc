"""One event loop in a thread of its own, to which every task of the process submits its calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from combee_core.errors import RunStopped

T = TypeVar("T")

_CLOSED = "the event loop of the model calls is closed: this process makes no more calls"


class BackgroundLoop:
    """Runs coroutines for callers in other threads, which block until theirs is done."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="combee-calls", daemon=True)
        self._open = True
        self._waiting = 0
        self._lock = threading.Lock()
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """The coroutine's result, or what it raised.

        Raises `RunStopped` when the loop is closed before the coroutine ends, `TimeoutError` after so many seconds,
        when it is cancelled, and `RuntimeError` when called on the loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a coroutine on the loop must await, not run()")
        with self._lock:
            if not self._open:
                coroutine.close()
                raise RunStopped(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._waiting += 1
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise
        except CancelledError:
            raise RunStopped(_CLOSED) from None
        finally:
            with self._lock:
                self._waiting -= 1

    @property
    def is_busy(self) -> bool:
        """True while somebody waits for a result."""
        return self._waiting > 0

    def cancel(self) -> None:
        """Cancel all that runs now: their callers get `RunStopped`. The loop stays open."""
        with self._lock:
            if self._open:
                self._loop.call_soon_threadsafe(self._cancel_all)

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def close(self, seconds: float | None = None) -> None:
        """Stop the loop once; what is still running on it is cancelled.

        What does not end within so many seconds is left to itself, and ends with the process.
        """
        with self._lock:
            if self._open:
                self._open = False
                asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end(self) -> None:
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        # What has ended in this very turn of the loop hands its result over in the next one.
        await asyncio.sleep(0)
        self._loop.stop()
