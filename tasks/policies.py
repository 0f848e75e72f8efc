"""Retry, cache and result policy of every task, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE, CacheKeyFnPolicy
from prefect.client.schemas.objects import State as PrefectState
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext
from prefect.tasks import exponential_backoff

from combee_core.config import ModelSettings
from combee_core.errors import CombeeError

P = ParamSpec("P")
R = TypeVar("R")

_JITTER = 0.5


def _key(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    key: str = parameters["key"]
    return key


def _may_retry(task: Task[..., Any], run: TaskRun, state: PrefectState[Any]) -> bool:
    """Only what may succeed later; an error that is not ours is a fault of the code and is not repeated."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, CombeeError) and error.retryable


def saved(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task whose result is kept in the run's store under its parameter `key`.

    The key says everything that the result depends on. Prefect's own policies would miss the prompts (TASK_SOURCE
    reads the function's text alone) or would never hit in another run (RUN_ID).
    """
    return task(
        task_run_name=name,
        persist_result=True,
        cache_policy=CacheKeyFnPolicy(cache_key_fn=_key),
        result_serializer="json",
        retry_condition_fn=_may_retry,
    )


def plain(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task whose result is not kept: it is cheap, or what it makes is written to the store by itself."""
    return task(task_run_name=name, persist_result=False, cache_policy=NO_CACHE, retry_condition_fn=_may_retry)


def kept(in_block: str, model: ModelSettings, stage: Task[P, R]) -> Task[P, R]:
    """`stage` with this run's block for results and its retries (exponential back-off with jitter)."""
    return stage.with_options(
        result_storage=in_block,
        retries=model.retries,
        retry_delay_seconds=exponential_backoff(model.retry_delay),
        retry_jitter_factor=_JITTER,
    )
