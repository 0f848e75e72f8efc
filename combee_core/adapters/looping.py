"""The process's one event loop for model calls: made when it is first needed, dismissed at an orderly end."""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

from combee_core.loop import BackgroundLoop

T = TypeVar("T")

_lock = threading.Lock()


@lru_cache(maxsize=1)
def _loop() -> BackgroundLoop:
    return BackgroundLoop()


def calls(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a stage on the process's one event loop and wait for it."""
    with _lock:
        loop = _loop()
    return loop.run(coroutine)


def present_loop() -> BackgroundLoop | None:
    """The loop, None before the first call."""
    with _lock:
        return _loop() if _loop.cache_info().currsize else None


def dismissed_loop() -> BackgroundLoop | None:
    """The loop, for whoever will close it; the next call is made on a new one."""
    with _lock:
        loop = _loop() if _loop.cache_info().currsize else None
        _loop.cache_clear()
    return loop


def is_asking() -> bool:
    """Whether anything in this process waits for a model."""
    loop = present_loop()
    return loop is not None and loop.is_busy
