"""Time without waiting: an event loop whose clock jumps to the next timer whenever nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Waits for no timer: what it should have waited is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits and there is no timer: this would take for ever")
        self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that keeps its own time, in seconds from 0, and runs the work of threads at once."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jumping.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """The result of a function that would block, already there."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  it belongs to whoever awaits the result
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""


def clock() -> float:
    """The running loop's time, for code that takes a clock."""
    return asyncio.get_running_loop().time()


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, on a virtual loop of its own; hours of sleep take no time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
