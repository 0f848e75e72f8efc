"""What the fault tests share: a Prefect server for all of them, deployments on it, figures at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from command import Combee
from deployed import Deployed

LEASE = 30
"""Seconds after which a dead run's slot is free again: the least that Prefect takes, by default 300."""


@pytest.fixture(scope="session")
def combee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Combee]:
    """The command, with one Prefect server for all tests of a process; it is stopped at the end."""
    lease = {"PREFECT_SERVER_CONCURRENCY_INITIAL_DEPLOYMENT_LEASE_DURATION": str(LEASE)}
    command = Combee(tmp_path_factory.mktemp("home"), lease)
    started = command("server", "up")
    assert started.code == 0, started.err
    yield command
    assert command("server", "down").code == 0


@pytest.fixture
def deployed(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Deployments of the nightly flow, and processes that run them; all are killed afterwards."""
    with Deployed.on(prefect_api, tmp_path_factory.mktemp("deployed")) as made:
        yield made
