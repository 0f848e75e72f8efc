"""Threads that start together on one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from combee_core.ports import Blob, Store

T = TypeVar("T")
WRITERS = 8


def at_once(act: Callable[[int], T], count: int = WRITERS) -> list[T]:
    """The results of `count` threads that start together."""
    gate = threading.Barrier(count)

    def run(number: int) -> T:
        gate.wait(60)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def blob(store: Store, key: str) -> Blob:
    """The object, which is there."""
    found = store.read(key)
    assert found is not None
    return found
