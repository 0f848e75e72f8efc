"""A Prefect server of the user's own: started once, found again, stopped. Needs no import of Prefect."""

from __future__ import annotations

import os
import random
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

from combee_core.adapters import database
from combee_core.adapters.atomic import hold_for_child, is_held, locked, move, naming, written
from combee_core.adapters.database import SQLITE
from combee_core.adapters.processes import Process, process_of
from combee_core.base import Noun
from combee_core.errors import CombeeError, UsageError

START_SECONDS = 300.0
_RECORD, _LOCK = "server.json", "server.lock"
_PORTS = range(15_000, 32_000)
"""No connection is given one of these between the look for a free one and the server's start."""


class ServerFile(Noun):
    """`server.json`: the server that this home has started. `database` is without its password."""

    host: str
    pid: int
    started: str
    port: int
    database: str = SQLITE

    @property
    def is_here(self) -> bool:
        """True where this number means that very process: of this machine and container, and not used again."""
        return process_of(self.pid) == Process(self.host, self.pid, self.started)

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
    server = _alive(folder)
    return server if server and healthy(server.api) else None


def in_use(environ: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
    """The API address that is configured, else that of the user's own server with its database; None if not known."""
    if configured := configured_api(environ):
        return configured, None
    server = running(home(environ))
    return (server.api, server.database) if server else (None, None)


def up(folder: Path, given: str | None = None, port: int = 0) -> ServerFile:
    """The running server, or a new one in a session of its own, so that it outlives this process.

    `given` is a database's URL, by default the environment's. Raises `UsageError` where the running server, or the
    last one, has another database or port, `CombeeError` if the database or the server does not answer.
    """
    url = database.named_database(given, os.environ)
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            server = _alive(folder)
            if server is None:
                return _start(folder, url or _last(folder), port)
            _wait(server, folder)
            _same(server, url, port)
            return _record(folder, server)


def _same(server: ServerFile, url: str | None, port: int) -> None:
    """Raise `UsageError` if the running server is not what is asked for."""
    if url and database.masked(url) != server.database:
        raise UsageError(f"{server.ui} runs on {server.database}; to change that: combee server down, then up again")
    if port not in (0, server.port):
        raise UsageError(f"the server runs at {server.ui}; to change that: combee server down, then up again")


def _last(folder: Path) -> str:
    """SQLite, unless the last server had another database: passwords are not kept, and histories do not move."""
    last = _recorded(folder / _RECORD)
    if last and last.database != SQLITE:
        raise UsageError(
            f"the last server ran on {last.database}: name it again (--database or {database.VARIABLE}), "
            f"or --database {SQLITE} for a new history"
        )
    return SQLITE


def _start(folder: Path, url: str, port: int) -> ServerFile:
    if url != SQLITE:
        database.check_database(url)
    port, log = _port(folder, port), folder / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    # The server inherits the open lock and so holds it for as long as it lives, whatever becomes of `server.json`.
    lock = _take(folder / _LOCK)
    try:
        with log.open("ab") as out:
            process = subprocess.Popen(
                command,
                start_new_session=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=_environment(folder, port, url),
                pass_fds=(lock,),
            )
        server = ServerFile(**process_of(process.pid)._asdict(), port=port, database=database.masked(url))
        os.write(lock, server.model_dump_json().encode())
    finally:
        os.close(lock)
    _wait(server, folder, process)
    return _record(folder, server)


def _take(path: Path) -> int:
    if is_held(path):
        raise CombeeError(f"a Prefect server that this home does not know holds {path}; end it (lsof {path} names it)")
    return hold_for_child(path)


def _record(folder: Path, server: ServerFile) -> ServerFile:
    with written(folder, server.model_dump_json().encode()) as temporary:
        move(temporary, folder / _RECORD)
    return server


def _alive(folder: Path) -> ServerFile | None:
    """The server that holds this home's lock; None where there is none, or it is only just being started."""
    path = folder / _LOCK
    with naming(path):
        return _recorded(path) if is_held(path) else None


def down(folder: Path, patience: float = 20.0) -> ServerFile | None:
    """Stop the server of this home; the one that was stopped, None if none was running.

    Raises `CombeeError` with its pid if it does not end within `patience` seconds.
    """
    server = _alive(folder)
    if server is None:
        return None
    if not server.is_here:
        raise CombeeError(f"the server is process {server.pid} of {server.host} or of another container; stop it there")
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while _alive(folder):
        if time.monotonic() > deadline:
            raise CombeeError(f"the Prefect server does not stop; end process {server.pid} by hand")
        time.sleep(0.1)
    return server


def _recorded(path: Path) -> ServerFile | None:
    try:
        return ServerFile.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _port(folder: Path, wanted: int) -> int:
    """The wanted port, else that of the last server if it is free, so that old links go on working, else any."""
    last = _recorded(folder / _RECORD)
    anywhere = (*random.sample(_PORTS, 10), 0)
    for port in (wanted,) if wanted else (last.port, *anywhere) if last else anywhere:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise UsageError(f"port {wanted} of 127.0.0.1 is taken; name another one, or none")


def _environment(folder: Path, port: int, url: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PREFECT_API_URL", "PREFECT_PROFILE", database.VARIABLE)}
    # The UI asks port 4200 unless it is told otherwise, and shows an empty page.
    return {
        **kept,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": url
        if url != SQLITE
        else f"sqlite+aiosqlite:///{folder}/prefect/prefect.db",
        # SQLite has one writer; under load its default of 10 s ends in answers of 503.
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        # What reads events connects once, at the start: on a busy machine 5 s are too few, and no automation fires.
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def _wait(server: ServerFile, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
    """Until it answers; `process` is our child where we have started it ourselves."""
    deadline, log = time.monotonic() + START_SECONDS, folder / "server.log"
    while not healthy(server.api):
        if process and process.poll() is not None:
            raise CombeeError(f"the Prefect server ended with code {process.returncode}; see {log}")
        if time.monotonic() > deadline:
            if process:
                process.terminate()
            raise CombeeError(
                f"the Prefect server (process {server.pid}) did not answer within {START_SECONDS:.0f} s; see {log}"
            )
        time.sleep(0.2)


def healthy(api: str) -> bool:
    """Whether a Prefect API answers there."""
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
