"""A run's states without holding them: a state has a whole playbook in it, and a long run has thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from combee_core.errors import StoreError
from combee_core.records import State


class States(Sequence[State]):
    """The first `count` states of a run, in order.

    `load(n)` reads the one after batch n (from 1), anew each time it is needed; pass over them once or twice. Raises
    `StoreError` where one is gone.
    """

    def __init__(self, load: Callable[[int], State | None], count: int) -> None:
        self._load = load
        self._numbers = range(1, count + 1)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[State]:
        return map(self._read, self._numbers)

    @overload
    def __getitem__(self, at: int) -> State: ...

    @overload
    def __getitem__(self, at: slice) -> list[State]: ...

    def __getitem__(self, at: int | slice) -> State | list[State]:
        if isinstance(at, slice):
            return [self._read(number) for number in self._numbers[at]]
        return self._read(self._numbers[at])

    def _read(self, number: int) -> State:
        state = self._load(number)
        if state is None:
            raise StoreError(f"the state after batch {number} is gone; restore it, or start anew with --again")
        return state
