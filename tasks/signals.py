"""Ctrl-C and SIGTERM at a terminal: the first one stops in order, a second Ctrl-C at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from combee_core.adapters.workshop import WIND_DOWN

_STOPPING = (
    f"combee: stopping: no new call is made, answers in flight are saved ({WIND_DOWN:.0f} s at most); "
    "Ctrl-C once more ends at once"
)
_INTERRUPTED, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: like Ctrl-C, with the exit code of a process that this signal has ended."""

    code = _TERMINATED


@contextmanager
def heeded(flow_run_id: object) -> Iterator[None]:
    """Heed both signals while inside, where this flow run is worked on.

    Elsewhere than in the main thread, where Python gives none, nothing changes.
    """
    try:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        # A shell lets what it starts in the background ignore Ctrl-C.
        if handlers[signal.SIGINT] is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _interrupt(flow_run_id))
        # Prefect takes it while the flow runs, and hands it on when that has ended.
        signal.signal(signal.SIGTERM, _terminate)
    except ValueError:
        handlers = {}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _interrupt(flow_run_id: object) -> Callable[[int, FrameType | None], None]:
    interrupted = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            print(f"combee: ended; what is saved stays saved: combee rerun {flow_run_id}", file=sys.stderr, flush=True)
            os._exit(_INTERRUPTED)
        interrupted = True
        print(_STOPPING, file=sys.stderr, flush=True)
        raise KeyboardInterrupt

    return handle


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
