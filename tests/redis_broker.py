"""A real Redis for tests: a process on a free port of 127.0.0.1 that keeps nothing."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

START_SECONDS = 30


def redis_program() -> str | None:
    """The server's program, if it is installed."""
    return shutil.which("redis-server")


@contextmanager
def redis(program: str, folder: Path) -> Iterator[int]:
    """Its port; it is stopped on leaving."""
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_ready(port, child, folder / "redis.log")
        yield port
    finally:
        child.terminate()
        child.wait()


def _wait_ready(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port):
        said = log.read_text(errors="replace")[-3000:]
        assert child.poll() is None and time.monotonic() < deadline, f"Redis is not ready:\n{said}"  # noqa: PT018
        time.sleep(0.1)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False
