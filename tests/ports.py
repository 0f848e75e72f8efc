"""Ports of loopback that nobody listens on and that no connection is given: those come from 32768 upwards."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """One that may be listened on, a little later too."""
    while not is_free(port := random.randrange(15_000, 32_000)):
        pass
    return port


def is_free(port: int) -> bool:
    """Whether nobody listens there now."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
