"""A store in a bucket: `s3://bucket/prefix`, on AWS or any server that honours conditional writes.

Endpoint and credentials come from the environment alone (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …). The client
below repeats a write whose answer was lost, and the repetition is refused because the first one succeeded. So
each refusal and each lost answer is followed by a look at what the key really holds.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from combee_core.adapters.keys import check_key, check_prefix
from combee_core.adapters.lease import heartbeat_holder, heartbeat_lease
from combee_core.adapters.s3_connect import connect
from combee_core.adapters.s3_errors import LIMIT, Busy, Missing, Refused
from combee_core.errors import StoreUnavailable
from combee_core.ports import Aged, Blob

if TYPE_CHECKING:
    from combee_core.adapters.s3_client import S3Client

WAITS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each new try after a 409, stretched by up to as much again."""


class S3Store:
    """The `Store` under one prefix of one bucket. Threads share it; the first use connects."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        limit: float = LIMIT,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._bucket, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._limit, self._sleep, self._jitter = limit, sleep, jitter
        self._lock = threading.Lock()
        self._clients: dict[int, S3Client] = {}

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix`, without a trailing slash."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def read(self, key: str) -> Blob | None:
        """The object, or None where there is none; body and tag are of one answer."""
        name = self._name(key)
        try:
            return Blob(*self._client().get(name))
        except Missing:
            return None

    def create(self, key: str, data: bytes) -> bool:
        """Write only if absent. True if `data` is what the key holds afterwards."""
        return self.replace(key, data, None)

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        """Write only if the object still has `tag` (None: is absent). True if it holds `data` afterwards.

        Equal bytes of another writer cannot be told from our own lost answer, so a body that counts something
        or names an owner should hold a word that no other writer has.
        """
        waits = iter(WAITS)
        while True:
            fault = self._put(key, data, tag)
            if fault is None:
                return True
            held = self.read(key)
            if held is not None and held.data == data:
                return True
            if isinstance(fault, Refused | Missing) or (held.tag if held else None) != tag:
                return False
            wait = next(waits, None)
            if wait is None or not isinstance(fault, Busy):
                raise fault
            self._sleep(wait * (1 + self._jitter()))

    def list(self, prefix: str) -> Sequence[str]:
        """Keys that start with `prefix`, sorted, however many pages they fill."""
        return sorted(aged.key for aged in self.ages(prefix))

    def ages(self, prefix: str) -> Iterator[Aged]:
        """Key, time of the last write and size of each object that starts with `prefix`."""
        check_prefix(prefix)
        for entry in self._client().listing(self._prefix + prefix):
            name = str(entry["Key"]).removeprefix(self._prefix)
            if not name.endswith("/"):  # a console's folder mark is no object
                yield Aged(name, entry["LastModified"], entry["Size"])

    def delete(self, key: str) -> None:
        """Remove; absent is fine."""
        name = self._name(key)
        with suppress(Missing):
            self._client().call("delete_object", name, Key=name)

    def lease(self, key: str, holder: str) -> AbstractContextManager[None]:
        """Hold `key` while inside, by heartbeat; `RunHeld` with the holder's text if a live one has it."""
        return heartbeat_lease(self, key, holder)

    def holder(self, key: str) -> str | None:
        """Who holds `key` now, by its heartbeat; None where no live process does."""
        return heartbeat_holder(self, key)

    def _put(self, key: str, data: bytes, tag: str | None) -> Refused | Missing | StoreUnavailable | None:
        """One conditional write; returned, not raised, is what may hide that it succeeded."""
        name = self._name(key)
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        try:
            self._client().call("put_object", name, Key=name, Body=data, **condition)
        except (Refused, Missing, StoreUnavailable) as fault:
            return fault
        return None

    def _name(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _client(self) -> S3Client:
        """This process's client: one inherited by fork has a dead thread, so each process makes its own."""
        with self._lock:
            if os.getpid() not in self._clients:
                self._clients[os.getpid()] = connect(self._bucket, self._limit)
            return self._clients[os.getpid()]
