"""A real PostgreSQL for tests: a cluster of its own on a free port of 127.0.0.1, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ports import free_port

START_SECONDS = 60
PASSWORD = "pass:word/1@x"
"""With everything in it that a URL must escape."""


@dataclass(frozen=True)
class Postgres:
    """Where it listens. `psql` runs statements as its owner."""

    programs: Path
    folder: Path
    port: int

    def url(self, database: str = "prefect", role: str = "prefect", password: str = PASSWORD) -> str:
        """The URL as the Prefect server wants it."""
        return f"postgresql+asyncpg://{role}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def psql(self, *statements: str, database: str = "postgres") -> str:
        """What the statements print, a row a line."""
        command = [self.programs / "psql", "-h", self.folder, "-p", self.port, "-U", "postgres", "-d", database]
        options = ["-XAtq", "-v", "ON_ERROR_STOP=1", *(part for text in statements for part in ("-c", text))]
        done = subprocess.run([*map(str, command), *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def postgres_programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs: Debian's, else that on the path."""
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(debian, key=lambda path: int(path.parts[-3]), default=None) or shutil.which("initdb")
    return Path(newest).parent if newest else None


@contextmanager
def postgres(programs: Path) -> Iterator[Postgres]:
    """Make a cluster with a role and a database `prefect`, run it, and stop it on leaving."""
    with tempfile.TemporaryDirectory(prefix="postgres-", dir="/tmp") as name:
        folder, owner = Path(name), _owner()
        if owner:
            shutil.chown(folder, owner["user"], owner["group"])
        server = Postgres(programs, folder, free_port())
        _make(server, owner)
        with (folder / "log").open("wb") as log:
            child = subprocess.Popen(_command(server), cwd=folder, stdout=log, stderr=log, **owner)
        try:
            _wait_ready(server, child)
            secret = PASSWORD.replace("'", "''")
            server.psql(f"CREATE ROLE prefect LOGIN PASSWORD '{secret}'", "CREATE DATABASE prefect OWNER prefect")
            server.psql("CREATE EXTENSION pg_trgm", database="prefect")
            yield server
        finally:
            child.send_signal(signal.SIGQUIT)  # at once, and its helper processes with it
            child.wait()


def _owner() -> dict[str, Any]:
    """The user that the server runs as: it refuses root."""
    if os.geteuid():
        return {}
    owner = pwd.getpwnam("postgres")
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _make(server: Postgres, owner: dict[str, Any]) -> None:
    command = [str(server.programs / "initdb"), "-D", str(server.folder / "data"), "-U", "postgres", "--no-sync"]
    how = ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    done = subprocess.run([*command, *how], cwd=server.folder, capture_output=True, text=True, **owner)
    assert done.returncode == 0, done.stdout + done.stderr


def _command(server: Postgres) -> list[str]:
    where = ["-D", str(server.folder / "data"), "-p", str(server.port), "-k", str(server.folder)]
    return [str(server.programs / "postgres"), *where, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]


def _wait_ready(server: Postgres, child: subprocess.Popen[bytes]) -> None:
    ready = [str(server.programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(server.port)]
    deadline = time.monotonic() + START_SECONDS
    while subprocess.run(ready, capture_output=True).returncode:
        log = (server.folder / "log").read_text(errors="replace")[-3000:]
        assert child.poll() is None and time.monotonic() < deadline, f"PostgreSQL is not ready:\n{log}"  # noqa: PT018
        time.sleep(0.1)
