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
        self._thread = threading.Thread(target=self._loop.run_forever, name="combee-calls", daemon=True)
        self._open = True
        self._lock = threading.Lock()
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, or what it raised.

        Raises `RunStopped` when the loop is closed before the coroutine ends, and `RuntimeError` when called on the
        loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a coroutine on the loop must await, not run()")
        with self._lock:
            if not self._open:
                coroutine.close()
                raise RunStopped(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise RunStopped(_CLOSED) from None

    def close(self) -> None:
        """Stop the loop once; what is still running on it is cancelled."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            rest = asyncio.run_coroutine_threadsafe(_cancel_the_rest(), self._loop)
        rest.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_the_rest() -> None:
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
