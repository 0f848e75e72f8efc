"""A Prefect server of the user's own: started once, found again, stopped. Needs no import of Prefect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from combee_core.adapters.atomic import locked, move, naming, written
from combee_core.adapters.processes import Process, is_gone, process_of
from combee_core.base import Noun
from combee_core.errors import CombeeError

START_SECONDS = 120.0


class ServerFile(Noun):
    """`server.json`: the server that this home has started, known as a process so that a used-again pid is not it."""

    host: str
    pid: int
    started: str
    port: int

    @property
    def is_gone(self) -> bool:
        """True where it is certain that the process has ended."""
        return is_gone(Process(self.host, self.pid, self.started))

    @property
    def api(self) -> str:
        """Address for clients."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui(self) -> str:
        """Address for people."""
        return f"http://127.0.0.1:{self.port}"


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """`$COMBEE_HOME`, by default `~/.combee`."""
    return Path(environ.get("COMBEE_HOME") or Path.home() / ".combee")


def configured_api(environ: Mapping[str, str] = os.environ) -> str | None:
    """The API address that the user has configured, by variable or by active Prefect profile."""
    if environ.get("PREFECT_API_URL"):
        return environ["PREFECT_API_URL"]
    profiles = Path(environ.get("PREFECT_HOME") or Path.home() / ".prefect") / "profiles.toml"
    try:
        data = tomllib.loads(profiles.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return None
    active = environ.get("PREFECT_PROFILE") or data.get("active") or "default"
    url = data.get("profiles", {}).get(active, {}).get("PREFECT_API_URL")
    return str(url) if url else None


def running(folder: Path) -> ServerFile | None:
    """The live server of this home, if it answers."""
    server = _recorded(folder)
    return server if server and not server.is_gone and healthy(server.api) else None


def up(folder: Path) -> ServerFile:
    """The running server, or a new one in a session of its own, so that it outlives this process.

    Raises `CombeeError` with the log's path if it does not answer in time.
    """
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            return running(folder) or _start(folder)


def _start(folder: Path) -> ServerFile:
    port, log = _port(folder), folder / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            start_new_session=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=_environment(folder, port),
        )
    server = ServerFile(**process_of(process.pid)._asdict(), port=port)
    _wait(process, server, log)
    with written(folder, server.model_dump_json().encode()) as temporary:
        move(temporary, folder / "server.json")
    return server


def down(folder: Path, patience: float = 20.0) -> ServerFile | None:
    """Stop the server of this home; the one that was stopped, None if none was running.

    Raises `CombeeError` with its pid if it does not end within `patience` seconds.
    """
    server = running(folder)
    if server is None:
        return None
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while not server.is_gone:
        if time.monotonic() > deadline:
            raise CombeeError(f"the Prefect server does not stop; end process {server.pid} by hand")
        time.sleep(0.1)
    return server


def _recorded(folder: Path) -> ServerFile | None:
    try:
        return ServerFile.model_validate_json((folder / "server.json").read_bytes())
    except (OSError, ValueError):
        return None


def _port(folder: Path) -> int:
    """The port of the last server if it is free, so that old links go on working; else any free one."""
    last = _recorded(folder)
    for port in (last.port if last else 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CombeeError("no free port on 127.0.0.1")


def _environment(folder: Path, port: int) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PREFECT_API_URL", "PREFECT_PROFILE")}
    # The UI asks port 4200 unless it is told otherwise, and shows an empty page.
    return {
        **kept,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        # SQLite has one writer; under load its default of 10 s ends in answers of 503.
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def _wait(process: subprocess.Popen[bytes], server: ServerFile, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CombeeError(f"the Prefect server ended with code {process.returncode}; see {log}")
        if healthy(server.api):
            return
        time.sleep(0.2)
    process.terminate()
    raise CombeeError(f"the Prefect server did not answer within {START_SECONDS:.0f} s; see {log}")


def healthy(api: str) -> bool:
    """Whether a Prefect API answers there."""
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
