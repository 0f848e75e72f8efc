"""Retry, cache and result policy of every task, in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE, CacheKeyFnPolicy
from prefect.client.schemas.objects import State as PrefectState
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext
from prefect.states import Failed
from prefect.tasks import exponential_backoff

from combee_core.config import ModelSettings
from combee_core.errors import CombeeError
from combee_core.shards import Shard, ShardUnfinished, Work, failures, partial
from tasks.results import block_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_JITTER = 0.5


def _key(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    key: str = parameters["key"]
    return key


def _may_retry(task: Task[..., Any], run: TaskRun, state: PrefectState[Any]) -> bool:
    """Only what may succeed later; an error that is not ours is a fault of the code and is not repeated.

    A shard that ends as failed brings its values with it: they are no error, so that it is not repeated either.
    """
    error = state.result(raise_on_failure=False)
    return isinstance(error, CombeeError) and error.retryable


def saved(stage: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task on a `shard` of a stage's items, whose result is kept in the run's store under its parameter `key`.

    The key says everything that the result depends on. Prefect's own policies would miss the prompts (TASK_SOURCE
    reads the function's text alone) or would never hit in another run (RUN_ID).
    """
    return task(
        name=stage,
        task_run_name="{shard.name}",
        persist_result=True,
        cache_policy=CacheKeyFnPolicy(cache_key_fn=_key),
        result_serializer="json",
        # Prefect would hold the last thousand results for whoever asks again; here nobody does.
        cache_result_in_memory=False,
        retry_condition_fn=_may_retry,
    )


def plain(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task whose result is not kept: it is cheap, or what it makes is written to the store by itself."""
    return task(
        name=name, task_run_name=name, persist_result=False, cache_policy=NO_CACHE, retry_condition_fn=_may_retry
    )


def kept(in_block: str, model: ModelSettings, stage: Task[P, R]) -> Task[P, R]:
    """`stage` with this run's block for results and its retries (exponential back-off with jitter)."""
    return stage.with_options(
        result_storage=block_of(in_block),
        retries=model.task_retries,
        retry_delay_seconds=exponential_backoff(model.retry_delay),
        retry_jitter_factor=_JITTER,
    )


def work_through(work: Work, shard: Shard[T], ask: Callable[[T], Awaitable[R]]) -> Any:
    """Work on a shard's items together, inside a task: their results, in order. `work` does it and gives errors back.

    While items and attempts remain that may succeed, the task fails and its retry asks for those alone: the others'
    answers are saved. After the last attempt, a single item's error is the task's. A larger shard ends as failed with
    what it has, an `Unsettled` for each error: Prefect keeps no failed result, so that a rerun asks for the rest.
    Errors leave without what they came from: Prefect logs that too, and a provider's error may quote an answer.
    """
    try:
        ended = work(shard.items, ask)
    except CombeeError as error:
        raise error.alone() from None
    failed = failures(shard, ended)
    if not failed:
        return ended
    if len(shard.items) == 1:
        raise failed[0][1].alone()
    message = f"{len(failed)} of {len(shard.items)} failed: " + "; ".join(f"{name}: {e}" for name, e in failed[:3])
    if _attempts_remain() and any(error.retryable for _, error in failed):
        raise ShardUnfinished(message)
    return Failed(message=message, data=partial(ended))


def _attempts_remain() -> bool:
    context = TaskRunContext.get()
    return context is not None and context.task_run.run_count <= context.task.retries
