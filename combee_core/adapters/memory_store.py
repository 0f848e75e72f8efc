"""A store in this process's memory: `memory://name`."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NamedTuple

from combee_core.adapters.keys import check_key, check_prefix
from combee_core.adapters.lease import heartbeat_holder, heartbeat_lease
from combee_core.ports import Aged, Blob

_LOCK = threading.RLock()
_STORES: dict[str, dict[str, _Object]] = {}


class _Object(NamedTuple):
    data: bytes
    written: datetime


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryStore:
    """The `Store` of one name; all objects of that name in one process share the content.

    It lives as long as the process and is seen by no other one, so it suits tests and trials. `clock` says when an
    object is written.
    """

    def __init__(self, name: str, clock: Callable[[], datetime] = _now) -> None:
        self._name = name
        self._clock = clock

    @property
    def uri(self) -> str:
        """`memory://name`."""
        return f"memory://{self._name}"

    def read(self, key: str) -> Blob | None:
        """The object, or None where there is none."""
        check_key(key)
        with _LOCK:
            held = self._objects.get(key)
        return None if held is None else Blob(held.data, _tag(held.data))

    def create(self, key: str, data: bytes) -> bool:
        """Write only if absent. True if `data` is what the key holds afterwards."""
        return self.replace(key, data, None)

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        """Write only if the object still has `tag` (None: is absent). True if it holds `data` afterwards."""
        check_key(key)
        with _LOCK:
            held = self._objects.get(key)
            if (None if held is None else _tag(held.data)) == tag:
                held = self._objects[key] = _Object(bytes(data), self._clock())
            return held is not None and held.data == data

    def list(self, prefix: str) -> Sequence[str]:
        """Keys that start with `prefix`, sorted."""
        check_prefix(prefix)
        with _LOCK:
            return sorted(key for key in self._objects if key.startswith(prefix))

    def ages(self, prefix: str) -> Iterator[Aged]:
        """Key, time of the last write and size of each object that starts with `prefix`."""
        for key in self.list(prefix):
            held = self._objects.get(key)
            if held is not None:
                yield Aged(key, held.written, len(held.data))

    def delete(self, key: str) -> None:
        """Remove; absent is fine."""
        check_key(key)
        with _LOCK:
            self._objects.pop(key, None)

    def lease(self, key: str, holder: str) -> AbstractContextManager[None]:
        """Hold `key` while inside; `RunHeld` with the holder's text if somebody has it."""
        return heartbeat_lease(self, key, holder)

    def holder(self, key: str) -> str | None:
        """Who holds `key` now; None where no live process does."""
        return heartbeat_holder(self, key)

    @property
    def _objects(self) -> dict[str, _Object]:
        with _LOCK:
            return _STORES.setdefault(self._name, {})


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
