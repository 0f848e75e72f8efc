"""Asking about many items at once, and in halves where the whole is too large, cut or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from combee_core.errors import AnswerTruncated, CombeeError, ModelRefused, ModelTooLarge

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class Parts(Generic[T, A]):
    """Answers in the items' order, and the single items that could not be asked about, each with its error."""

    answers: tuple[A, ...] = ()
    left: tuple[tuple[T, CombeeError], ...] = ()


async def ask_in_parts(
    items: Sequence[T], ask: Callable[[Sequence[T], bool], Awaitable[A]], *, wide: bool = False
) -> Parts[T, A]:
    """Ask about all items; halve, and ask about the halves at once, as often as it takes.

    At most 2·n − 1 prompts. `ask` is told whether to allow twice the output at once: so it is below a whole that
    was cut even with that, or each level of halves would need a retry of its own. Other errors are raised.
    """
    try:
        return Parts(answers=(await ask(items, wide),))
    except (ModelTooLarge, ModelRefused, AnswerTruncated) as error:
        if error.retryable:
            raise
        if len(items) == 1:
            return Parts(left=((items[0], error),))
        wide = wide or isinstance(error, AnswerTruncated)
    middle = (len(items) + 1) // 2
    halves = (ask_in_parts(half, ask, wide=wide) for half in (items[:middle], items[middle:]))
    first, second = await together(halves)
    return Parts(first.answers + second.answers, first.left + second.left)


async def together(awaitables: Iterable[Awaitable[A]]) -> list[A]:
    """All results in order, once all have ended; then the errors' first is raised, final ones before retryable.

    A call left in flight by a sibling's error would be paid for again by the retry that follows.
    """
    ended = await asyncio.gather(*awaitables, return_exceptions=True)
    errors = [result for result in ended if isinstance(result, BaseException)]
    if errors:
        raise min(errors, key=lambda error: getattr(error, "retryable", False))
    return [result for result in ended if not isinstance(result, BaseException)]
