"""A slow call is sent once more, and the first good answer wins (Dean and Barroso, "The Tail at Scale", 2013)."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeVar

from combee_core.calls import Receipt
from combee_core.errors import AnswerError, ModelRefused

T = TypeVar("T")

ENOUGH = 10
"""Answers of a stage before any call of it counts as slow."""

AT_LEAST = 5.0
"""Seconds before which no call counts as slow."""

_REMEMBERED = 256
"""The latest answers of a stage, whose median counts."""

_LOOK = 5.0
"""Seconds after which a call whose stage has too few answers is looked at again."""


class Overtaken(Exception):
    """The other try had its answer first."""


class Unfit(Exception):
    """No answer that can be used, and the receipt of the one that came, if one came."""

    def __init__(self, error: AnswerError | ModelRefused, receipt: Receipt | None) -> None:
        super().__init__(error, receipt)
        self.error, self.receipt, self.retryable = error, receipt, error.retryable


@dataclass(eq=False)
class Try:
    """One of at most two requests for an answer; `sent` is None while it waits for its turn or for a busy provider."""

    stage: str
    hedge: bool = False
    sent: float | None = None


class Patience:
    """Knows when a call is slow: at `times` the median of its stage, 0 for never."""

    def __init__(self, times: float, clock: Callable[[], float]) -> None:
        self._times, self._clock = times, clock
        self._seconds: defaultdict[str, deque[float]] = defaultdict(partial(deque, maxlen=_REMEMBERED))

    def answered(self, stage: str, seconds: float) -> None:
        """Note how long an answer took."""
        self._seconds[stage].append(seconds)

    def limit(self, stage: str) -> float:
        """Seconds after which a call of this stage is slow; infinite while nobody knows."""
        seen = self._seconds[stage]
        if not self._times or len(seen) < ENOUGH:
            return math.inf
        return max(AT_LEAST, self._times * median(seen))

    def left(self, one: Try) -> float:
        """Seconds until this call is slow; infinite while nobody knows."""
        return math.inf if one.sent is None else one.sent + self.limit(one.stage) - self._clock()


async def first_good(
    ask: Callable[[Try], Coroutine[Any, Any, T]], stage: str, patience: Patience, late: set[asyncio.Task[Any]]
) -> T:
    """The first result of one try or, where that is slow, of two; an error of one does not end the other.

    A second request that still waits for its turn when the first times out is not sent; the caller retries.
    If both fail, `Unfit` is raised before any other error, so that an answer that came counts as an attempt, and a
    final error before a retryable one. A second request that is still under way when the first wins stays in `late`
    until its answer comes; one that was not sent yet never is.
    """
    tries: dict[asyncio.Task[T], Try] = {}

    def start(one: Try) -> asyncio.Task[T]:
        task = asyncio.create_task(ask(one))
        tries[task] = one
        return task

    try:
        first = start(Try(stage))
        if not await _ends_in_time(first, tries[first], patience):
            start(Try(stage, hedge=True))
        result = await _first_result(tries)
    except asyncio.CancelledError:
        await _cancel(tries)
        raise
    for task, one in tries.items():
        if not task.done():
            _leave(task, late) if one.sent is not None else task.cancel()
    return result


async def _ends_in_time(task: asyncio.Task[Any], one: Try, patience: Patience) -> bool:
    while (left := patience.left(one)) > 0:
        done, _ = await asyncio.wait([task], timeout=min(left, _LOOK) if math.isinf(left) else left)
        if done:
            return True
    return False


async def _first_result(tasks: dict[asyncio.Task[T], Try]) -> T:
    pending = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception() is None:
                return task.result()
        unsent = {task: tasks[task] for task in pending if tasks[task].hedge and tasks[task].sent is None}
        await _cancel(unsent)
        pending -= set(unsent)
    ended = (task.exception() for task in tasks if not task.cancelled())
    errors = [error for error in ended if error and not isinstance(error, Overtaken)]
    raise min(errors, key=lambda error: (not isinstance(error, Unfit), getattr(error, "retryable", False)))


def _leave(task: asyncio.Task[Any], late: set[asyncio.Task[Any]]) -> None:
    def forget(done: asyncio.Task[Any]) -> None:
        late.discard(done)
        # Looked at, so that the loop does not report an error that nobody waits for.
        _ = done.cancelled() or done.exception()

    late.add(task)
    task.add_done_callback(forget)


async def _cancel(tasks: dict[asyncio.Task[Any], Try]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
