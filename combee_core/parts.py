"""Asking about many items at once, and in halves where the whole is too large, cut or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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


async def ask_in_parts(items: Sequence[T], ask: Callable[[Sequence[T]], Awaitable[A]]) -> Parts[T, A]:
    """Ask about all items; halve, and ask about the halves at once, as often as it takes (at most 2·n − 1 prompts)."""
    try:
        return Parts(answers=(await ask(items),))
    except (ModelTooLarge, ModelRefused, AnswerTruncated) as error:
        if error.retryable:
            raise
        if len(items) == 1:
            return Parts(left=((items[0], error),))
    middle = (len(items) + 1) // 2
    halves = await asyncio.gather(ask_in_parts(items[:middle], ask), ask_in_parts(items[middle:], ask))
    first, second = halves
    return Parts(first.answers + second.answers, first.left + second.left)
