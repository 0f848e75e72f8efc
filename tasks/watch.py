"""A run from a terminal looks after itself: Cancel reaches it in no other way, and a dead server must not hold it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from time import monotonic
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import PREFECT_API_URL

from combee_core.adapters.looping import is_asking
from combee_core.adapters.workshop import PATIENCE, close, wind_down
from tasks.setting import setting

INTERVAL = 2.0
"""Seconds between two looks."""

AWAY = 150.0
"""Seconds that the Prefect server may be away. The client itself tries each request for about two minutes; a flow whose
requests all fail would wait so long at each of its levels."""


@contextmanager
def watching(
    flow_run_id: UUID, lost: Callable[[str], None], interval: float = INTERVAL, away: float = AWAY
) -> Iterator[threading.Event]:
    """While inside, a thread looks every `interval` seconds whether the flow run is to be cancelled.

    The event is set once it is; then this process makes no new call. Calls to a model need no server, so that only
    where none is made and the server does not answer for `away` seconds, the thread calls `lost` with what to say about
    it; it is to end the process.
    """
    cancelled, over = threading.Event(), threading.Event()

    def watch() -> None:
        seen = monotonic()
        with setting("client", "max_retries", 0), get_client(sync_client=True) as client:
            while not over.wait(interval):
                state = _state(client, flow_run_id)
                if state in ("CANCELLING", "CANCELLED"):
                    cancelled.set()
                    wind_down(f"flow run {flow_run_id} was cancelled")
                    return
                seen = monotonic() if state or is_asking() else seen
                if monotonic() - seen > away:
                    lost(f"the Prefect server at {PREFECT_API_URL.value()} has not answered for {away:.0f} s")
                    return

    # A new thread would know nothing of settings that hold only here.
    thread = threading.Thread(target=copy_context().run, args=(watch,), name="combee-watch", daemon=True)
    thread.start()
    try:
        yield cancelled
    finally:
        over.set()


def _state(client: SyncPrefectClient, flow_run_id: UUID) -> str:
    """The kind of state that the flow run is in; empty while the server does not answer."""
    try:
        state = client.read_flow_run(flow_run_id).state
    except Exception:  # noqa: BLE001 - whatever it is: only its lasting says something
        return ""
    return state.type.value if state else "PENDING"


def leave(message: str) -> None:
    """End this process: what is paid for is written, and the message says why it ends."""
    wind_down(message)
    close(PATIENCE)
    print(f"combee: {message}", file=sys.stderr, flush=True)
    os._exit(1)
