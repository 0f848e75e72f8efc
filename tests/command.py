"""The `combee` command as a child process, with a home and a server of the tests' own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Done:
    """An ended command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on stdout; fails with the command's own words if there is none."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError as error:
            raise AssertionError(f"exit {self.code}, no JSON on stdout: {self.out!r}\n{self.err[-3000:]}") from error


@dataclass(frozen=True)
class Combee:
    """Runs commands. `home` is COMBEE_HOME, `environ` what differs from this process's environment."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = ROOT

    def __call__(self, *args: object, timeout: float = 300) -> Done:
        """Run to the end."""
        process = self.start(*args)
        out, err = process.communicate(timeout=timeout)
        return Done(process.returncode, out, err)

    def start(self, *args: object) -> subprocess.Popen[str]:
        """Start, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "combee_core.cli", *map(str, args)],
            cwd=self.cwd,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell that runs the tests in the background lets its children ignore Ctrl-C.
            preexec_fn=_heed_interrupts,
        )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COMBEE_"))}
        own = {"COMBEE_HOME": str(self.home), "PREFECT_HOME": str(self.home / "client"), "OPENAI_API_KEY": "none"}
        return {**kept, "PYTHONPATH": str(ROOT), **own, **self.environ}


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the process and all that it started in its group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
