"""Holding a key by a heartbeat: a lease over nothing but `read`, `create`, `replace` and `delete`.

The lease is an object that says who holds it and when the holder last gave a sign of life. A process that was
killed leaves it behind; whoever comes next sees that the process is gone (same machine) or that its heart has
stopped (another machine), and takes the object over by compare-and-swap, so that only one of many succeeds.

Two machines compare wall clocks here, so these should agree to well within the patience of three intervals. On one
machine no clock counts: a clock that jumps by a day takes no run from a living process.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from combee_core.adapters.keys import check_key
from combee_core.adapters.processes import Process, is_alive, is_gone, this_process
from combee_core.base import Noun
from combee_core.errors import RunHeld, StoreError
from combee_core.events import event
from combee_core.ports import Store

INTERVAL = 30.0
"""Seconds between two heartbeats."""

PATIENCE = 3
"""A holder that is silent for more than this many intervals counts as dead."""

Clock = Callable[[], float]
_log = logging.getLogger(__name__)


class Hold(Noun):
    """Who holds a key. `beat` is in Unix seconds; `token` tells two holds of one process apart."""

    host: str
    pid: int
    started: str
    beat: float
    holder: str
    token: str

    def at(self, beat: float) -> bytes:
        """The object's bytes with a fresh beat; never equal to another holder's, thanks to the token."""
        return self.model_copy(update={"beat": beat}).model_dump_json().encode()


@contextmanager
def heartbeat_lease(
    store: Store, key: str, holder: str, *, interval: float = INTERVAL, clock: Clock = time.time
) -> Iterator[None]:
    """Hold `key` of `store` while inside; a daemon thread beats every `interval` seconds.

    Raises `RunHeld` with the holder's text if a live process has it, `StoreError` if the key holds something
    that is no lease. On leaving, only our own hold is removed.
    """
    check_key(key)
    mine = Hold(**this_process()._asdict(), beat=clock(), holder=holder, token=uuid.uuid4().hex)
    _take(store, key, mine, interval, clock)
    stop = threading.Event()

    def heart() -> None:
        while not stop.wait(interval) and _beat(store, key, mine, clock()):
            pass

    thread = threading.Thread(target=heart, name=f"lease of {key}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _release(store, key, mine)


def heartbeat_holder(store: Store, key: str, *, interval: float = INTERVAL, clock: Clock = time.time) -> str | None:
    """The text of the live process that holds `key`, None where there is none. Raises `StoreError` as taking does."""
    blob = store.read(key)
    owner = _parse(store, key, blob.data) if blob else None
    return owner.holder if owner and not _is_dead(owner, clock(), interval) else None


def held_by(holder: str, where: str, key: str) -> RunHeld:
    """The error that names the present holder."""
    who = holder or "a process that has just started"
    return RunHeld(f"held by {who} ({where}/{key}): wait until it ends, or stop it and try again", item=key)


def _take(store: Store, key: str, mine: Hold, interval: float, clock: Clock) -> None:
    while not store.create(key, mine.at(clock())):
        blob = store.read(key)
        if blob is None:
            continue
        owner, now = _parse(store, key, blob.data), clock()
        if not _is_dead(owner, now, interval):
            raise held_by(owner.holder, store.uri, key)
        if store.replace(key, mine.at(now), blob.tag):
            return


def _is_dead(owner: Hold, now: float, interval: float) -> bool:
    """What can be seen of the process counts; only where nothing can be seen, the clocks of both machines do."""
    process = Process(owner.host, owner.pid, owner.started)
    silent = now - owner.beat > PATIENCE * interval
    return is_gone(process) or (silent and not is_alive(process))


def _beat(store: Store, key: str, mine: Hold, now: float) -> bool:
    """One heartbeat; False when the hold is lost for good."""
    try:
        blob = store.read(key)
        if blob is not None and _parse(store, key, blob.data).token == mine.token:
            store.replace(key, mine.at(now), blob.tag)
            return True
    except StoreError as error:
        _warn("lease-heartbeat-missed", f"no heartbeat for {store.uri}/{key}, will try again: {error}")
        return True
    _warn("lease-lost", f"{store.uri}/{key} was taken over by another process while this one was silent")
    return False


def _release(store: Store, key: str, mine: Hold) -> None:
    """A hold that cannot be removed does no harm: its process ends or falls silent, and it is taken over."""
    try:
        blob = store.read(key)
        if blob is not None and _parse(store, key, blob.data).token == mine.token:
            store.delete(key)
    except StoreError as error:
        _warn("lease-left-behind", f"the lease {store.uri}/{key} stays behind: {error}")


def _warn(name: str, text: str) -> None:
    event(_log, logging.WARNING, name, text)


def _parse(store: Store, key: str, data: bytes) -> Hold:
    try:
        return Hold.model_validate_json(data)
    except ValidationError as error:
        raise StoreError(f"{store.uri}/{key} is not a lease: delete it if no run works on it") from error
