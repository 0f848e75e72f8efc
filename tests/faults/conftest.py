"""What the fault tests share besides `tests/conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deployed import Deployed


@pytest.fixture
def deployed(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Deployments of the nightly flow, and processes that run them; all are killed afterwards."""
    with Deployed.on(prefect_api, tmp_path_factory.mktemp("deployed")) as made:
        yield made
