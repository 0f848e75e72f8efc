"""The simulated model's server as a child process, on a free port of loopback.

with simulated_server(tmp_path, faults=["stage=reflect,kind=500,count=2"]) as server:
    ... api_base=server.url ...
    server.stats()["stages"]["reflect"]["calls"]
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class SimulatedServer:
    """`url` is the api_base (with `/v1`); `log_path` holds a JSON line at start and end of each call."""

    url: str
    log_path: Path
    process: subprocess.Popen[str]

    def get(self, path: str) -> Any:
        """The JSON at a path of the server, such as `/stats`."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + path, timeout=30) as answer:
            return json.load(answer)

    def stats(self) -> Any:
        """`{"stages": {stage: {"calls", "ok", "faults"}}, "total", "running", "peak"}`."""
        return self.get("/stats")

    def set_faults(self, *faults: str) -> Any:
        """Put these faults in force instead of the present ones; none at all makes the server sound."""
        return self.post("/faults", list(faults))

    def post(self, path: str, data: Any, timeout: float = 30) -> Any:
        """The JSON answer to a JSON body."""
        body = json.dumps(data).encode()
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, body, method="POST")
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def asked(self) -> Counter[str]:
        """How often each prompt of a stage was sent, by hash."""
        return Counter(line["prompt_sha"] for line in self.log() if line["event"] == "start" and line["stage"])

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        if not self.log_path.exists():
            return []
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]


@contextmanager
def simulated_server(
    folder: Path,
    *,
    faults: Sequence[str] = (),
    latency: float = 0.0,
    sigma: float = 0.0,
    seed: int | None = None,
    port: int = 0,
    logged: bool = True,
) -> Iterator[SimulatedServer]:
    """Start the server, wait until it answers, and stop it afterwards. The log is `folder`/calls.jsonl."""
    log_path = folder / "calls.jsonl"
    options = ["--port", str(port), "--latency", str(latency), "--latency-sigma", str(sigma)]
    options += [] if seed is None else ["--latency-seed", str(seed)]
    options += ["--log", str(log_path)] if logged else []
    options += [part for fault in faults for part in ("--fault", fault)]
    command = [sys.executable, "-m", "combee_core.simulation.server", *options]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield SimulatedServer(_address(process), log_path, process)
        finally:
            process.terminate()
            process.communicate(timeout=30)


def _address(process: subprocess.Popen[str]) -> str:
    line = process.stderr.readline() if process.stderr else ""
    if not line.startswith("simulated model at "):
        rest = process.communicate(timeout=30)[1]
        raise RuntimeError(f"the simulated server did not start: {line}{rest}")
    return line.removeprefix("simulated model at ").strip()
