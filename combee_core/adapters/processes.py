"""Which process is this, and is that one still alive?

A process number alone says little: numbers are used again, each container counts from 1, and a machine may
have been started anew. So a process is known by its host, its number and a start mark, which on Linux holds
the boot, the number space (container) and the start time in clock ticks. Elsewhere the mark is empty.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """One process of one machine. `started` is a mark to compare, not a time to show."""

    host: str
    pid: int
    started: str


def this_process() -> Process:
    """The process that asks."""
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """The process of this machine that has this number now."""
    return Process(socket.gethostname(), pid, _mark(pid))


def is_gone(process: Process) -> bool:
    """True only where it is certain: the process belongs to this machine and number space and has ended.

    False for another host, another container and another boot, about which nothing can be seen from here.
    """
    if process.host != socket.gethostname() or _space() != process.started.rpartition(":")[0]:
        return False
    ticks = _ticks(process.pid)
    return not _exists(process.pid) or (ticks is not None and ticks != process.started.rpartition(":")[2])


def is_alive(process: Process) -> bool:
    """True only where it is certain: a process of this machine and number space that runs, or is stopped."""
    return bool(process.started) and process == process_of(process.pid) and not is_gone(process)


def _mark(pid: int) -> str:
    return f"{space}:{_ticks(pid)}" if (space := _space()) else ""


def _space() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _ticks(pid: int) -> str | None:
    """Start time since boot; empty for one that ended unnoticed by its parent, None if it cannot be seen."""
    try:
        after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if after_name[0] in "ZX" else after_name[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
