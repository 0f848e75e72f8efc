"""Fresh Python processes: one alone, several that start together, one with a hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A fresh Python that runs `code`, with our package on its path."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def together(code: str, uri: str, count: int = 4) -> dict[int, str]:
    """What each of some processes said that run `code` at the same time; each says "ready" and waits for a line."""
    children = [child(code, uri) for _ in range(count)]
    pipes = [(one.stdin, one.stdout) for one in children]
    for _, said in pipes:
        assert said is not None
        assert said.readline() == "ready\n"
    for told, _ in pipes:
        assert told is not None
        told.write("go\n")
        told.flush()
    spoken = {one.pid: one.communicate(timeout=120)[0] for one in children}
    assert [one.returncode for one in children] == [0] * count
    return spoken


def fresh_interpreter(code: str, hash_seed: int) -> str:
    """What `code` prints in a new Python with that PYTHONHASHSEED; it may import the package and the tests' helpers."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()
