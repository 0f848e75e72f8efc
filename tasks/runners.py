"""Where tasks run: in threads of the flow's own process, or in the workers of a Dask cluster."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from combee_core.config import RunSettings
from combee_core.errors import UsageError
from combee_core.shards import SEEN

_PATIENCE = 10.0
_START_ONE = "start one with `dask scheduler` and give the address that it prints"


def runner_for(settings: RunSettings) -> TaskRunner[Any]:
    """The task runner of a run's iterations.

    Raises `UsageError` where the address is none, nobody answers there or prefect-dask is not installed.
    """
    if settings.dask is None:
        # A task waits in its thread for the model: with fewer threads than calls, calls would wait for threads.
        return ThreadPoolTaskRunner(max_workers=max(SEEN, settings.model.max_concurrency))
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise UsageError("prefect-dask is missing: pip install 'combee-pipeline[dask]'") from error
    _knock(settings.dask)
    return DaskTaskRunner(address=settings.dask)


def _knock(address: str) -> None:
    """Dask itself would try for half a minute and then name neither the option nor the way out."""
    try:
        where = urlsplit(address)
        socket.create_connection((where.hostname or "", where.port or 0), _PATIENCE).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address} ({error}); {_START_ONE}") from error
