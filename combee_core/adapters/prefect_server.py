"""A Prefect server of the user's own: started once, found again, stopped. Needs no import of Prefect."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from combee_core.base import Noun
from combee_core.errors import CombeeError

START_SECONDS = 120.0


class ServerFile(Noun):
    """`server.json`: the server that this home has started."""

    pid: int
    port: int

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
    try:
        server = ServerFile.model_validate_json((folder / "server.json").read_bytes())
    except (OSError, ValueError):
        return None
    return server if _is_prefect(server.pid, server.port) and healthy(server.api) else None


def up(folder: Path) -> ServerFile:
    """The running server, or a new one in a session of its own, so that it outlives this process.

    Raises `CombeeError` with the log's path if it does not answer in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        found = running(folder)
        if found:
            return found
        port = _port(folder)
        log = folder / "server.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "prefect",
                    "server",
                    "start",
                    "--host",
                    "127.0.0.1",
                    "--port",
                    str(port),
                ],
                start_new_session=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=_environment(folder, port),
            )
        server = ServerFile(pid=process.pid, port=port)
        _wait(process, server, log)
        temporary = folder / "server.json.new"
        temporary.write_text(server.model_dump_json())
        temporary.replace(folder / "server.json")
        return server


def down(folder: Path, patience: float = 20.0) -> ServerFile | None:
    """Stop the server of this home; the one that was stopped, None if none was running."""
    server = running(folder)
    if server is None:
        return None
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while _is_prefect(server.pid, server.port) and time.monotonic() < deadline:
        time.sleep(0.1)
    return server


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "server.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _port(folder: Path) -> int:
    """The port of the last server if it is free, so that old links go on working; else any free one."""
    try:
        wanted = int(json.loads((folder / "server.json").read_text())["port"])
    except (OSError, ValueError, KeyError):
        wanted = 0
    for port in (wanted, 0):
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


def _is_prefect(pid: int, port: int) -> bool:
    """Whether that process is a Prefect server on that port; a recycled pid is not."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return _alive(pid) if not Path("/proc/self").exists() else False
    except OSError:
        return False
    return b"prefect" in words and str(port).encode() in words


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
