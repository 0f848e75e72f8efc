"""`combee server`: on SQLite or PostgreSQL, found again, never two on one database."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, Combee, Done
from missing import missing
from postgres import PASSWORD, Postgres, postgres, postgres_programs

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

TRACES = 6


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    """One PostgreSQL for the tests of this file."""
    programs = postgres_programs()
    if programs is None:
        missing("PostgreSQL: apt-get install postgresql")
    with postgres(programs) as server:
        yield server


def record(home: Path) -> Any:
    return json.loads((home / "server.json").read_text())


def refused(done: Done, code: int, *words: str) -> str:
    assert done.code == code, done
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err
    return done.err


# PostgreSQL


@pytest.fixture(scope="module")
def on_postgres(database: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Combee]:
    """The command, with a Prefect server of its own on PostgreSQL."""
    command = Combee(tmp_path_factory.mktemp("home"), {"COMBEE_DATABASE_URL": database.url()})
    started = command("server", "up")
    assert started.code == 0, started.err
    yield command
    assert command("server", "down").code == 0


def test_a_night_runs_on_postgresql(on_postgres: Combee, database: Postgres, tmp_path: Path) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), TRACES, 0, date(2026, 3, 2)))
    when = ("--day", "2026-03-02", "--store", f"file://{tmp_path}/store")
    done = on_postgres("nightly", "--traces", tmp_path / "day.jsonl", *when, "--json").json
    assert (done["version"], done["accounting"]["learned"]) == (1, TRACES)
    runs = database.psql("SELECT name, state_type FROM flow_run ORDER BY name", database="prefect").splitlines()
    assert runs == [
        f"{name}|COMPLETED" for name in ("epoch-playbook-2026-03-02", "iteration-1", "nightly-playbook-2026-03-02")
    ]
    top = database.psql("SELECT id FROM flow_run WHERE parent_task_run_id IS NULL", database="prefect")
    assert top == done["flow_run_id"]


def test_status_names_the_database_and_nothing_that_is_kept_or_running_has_the_password(
    on_postgres: Combee, database: Postgres
) -> None:
    status = replace(on_postgres, environ={})("server", "status")
    assert f"postgresql+asyncpg://prefect:***@127.0.0.1:{database.port}/prefect" in status.out
    secrets = (PASSWORD.encode(), database.url().rpartition("@")[0].rpartition(":")[2].encode())
    pid = record(on_postgres.home)["pid"]
    kept = [path for path in on_postgres.home.rglob("*") if path.is_file()]
    for path in (*kept, Path(f"/proc/{pid}/cmdline")):
        assert not any(secret in path.read_bytes() for secret in secrets), path
    assert {"server.json", "server.lock", "server.log"} <= {path.name for path in kept}


def test_another_database_than_the_running_server_s_is_refused(on_postgres: Combee) -> None:
    refused(on_postgres("server", "up", "--database", "sqlite"), 2, "combee server down")
    refused(on_postgres("server", "up", "--port", 9), 2, "combee server down")


@pytest.mark.parametrize(
    ("database_name", "role", "password", "said"),
    [
        ("prefect", "prefect", "wrong", 'password authentication failed for user "prefect"'),
        ("nowhere", "prefect", PASSWORD, 'database "nowhere" does not exist'),
        ("foreign", "prefect", PASSWORD, "ALTER DATABASE foreign OWNER TO"),
        ("no_trgm", "prefect", PASSWORD, "CREATE EXTENSION pg_trgm in no_trgm"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_with_the_way_out(
    database: Postgres, foreign: None, tmp_path: Path, database_name: str, role: str, password: str, said: str
) -> None:
    url = database.url(database_name, role, password)
    error = refused(Combee(tmp_path, {"COMBEE_DATABASE_URL": url})("server", "up"), 1, said, ":***@", database_name)
    assert password not in error
    assert not (tmp_path / "server.json").exists()


@pytest.fixture(scope="module")
def foreign(database: Postgres) -> None:
    """Databases that do not belong to the role `prefect`; in one it may make tables."""
    database.psql('CREATE DATABASE "foreign"', "CREATE DATABASE no_trgm")
    database.psql("GRANT ALL ON SCHEMA public TO prefect", database="no_trgm")


# any database


def test_a_database_that_does_not_answer_is_named_and_nothing_is_started(tmp_path: Path) -> None:
    done = Combee(tmp_path)("server", "up", "--database", "postgresql://u:secret@127.0.0.1:9/prefect")
    assert "secret" not in refused(done, 1, "postgresql+asyncpg://u:***@127.0.0.1:9/prefect", "Connect call failed")
    assert not (tmp_path / "server.log").exists()


def test_a_home_that_was_on_postgresql_does_not_begin_a_new_history_unasked(tmp_path: Path) -> None:
    last = {"host": "h", "pid": 1, "started": "", "port": 1, "database": "postgresql+asyncpg://u:***@h/prefect"}
    (tmp_path / "server.json").write_text(json.dumps(last))
    for command in (("server", "up"), ("learn", ROOT / "README.md", "--store", f"file://{tmp_path}/store")):
        refused(Combee(tmp_path)(*command), 2, "postgresql+asyncpg://u:***@h/prefect", "COMBEE_DATABASE_URL", "sqlite")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(Combee(tmp_path)("server", "up", "--port", port), 2, f"port {port} of 127.0.0.1 is taken")


def test_a_wrong_record_does_not_hide_the_server_that_runs(combee: Combee) -> None:
    before = record(combee.home)
    for wrong in (json.dumps(before | {"pid": os.getpid()}), json.dumps(before | {"port": 9}), "{}", None):
        path = combee.home / "server.json"
        path.unlink() if wrong is None else path.write_text(wrong)
        assert str(before["port"]) in combee("server", "status").out
        assert combee("server", "up").code == 0
        assert record(combee.home) == before
    with urllib.request.urlopen(f"http://127.0.0.1:{before['port']}/api/health", timeout=30) as answer:
        assert answer.status == 200


def test_a_lock_without_a_word_from_its_holder_is_an_error_and_no_second_server(tmp_path: Path) -> None:
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path / "server.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        refused(Combee(tmp_path)("server", "up"), 1, f"{tmp_path}/server.lock", "end it")
        assert "no server is running" in Combee(tmp_path)("server", "status").out
        holder.communicate("\n")
