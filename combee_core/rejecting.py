"""Answers that were not used: what they are called, and when a prompt is not asked again because of them."""

from __future__ import annotations

from collections.abc import Sequence

from combee_core.config import ModelSettings
from combee_core.errors import AnswerError, AnswerTruncated, ModelRefused
from combee_core.hedging import Unfit
from combee_core.saving import Rejection


def named(unfit: Unfit, model: str, kept: str, *, final: bool) -> AnswerError | ModelRefused:
    """The same error, saying which model it was and where the answer's beginning is kept.

    A provider that refused the request has been named.
    """
    error = unfit.error
    message = f"{model}: {error}" if unfit.receipt else str(error)
    message += f"; its beginning is in the store: {kept}" if error.excerpt else ""
    return AnswerTruncated(message, final) if isinstance(error, AnswerTruncated) else type(error)(message)


def cuts(rejected: Sequence[Rejection]) -> list[Rejection]:
    """Those that were cut at the token limit."""
    return [r for r in rejected if r.kind == AnswerTruncated.__name__]


def allowed_cuts(settings: ModelSettings, wide: bool) -> int:
    """Truncated answers that a prompt may have before it is given up: one where no retry would be wider."""
    return 1 if wide or not settings.retries else 2


def refuse_again(rejected: Sequence[Rejection], allowed: int) -> None:
    """A refusal and a final truncation stay what they were: asking again would be paid for nothing.

    Raises `ModelRefused` or `AnswerTruncated` where there was one.
    """
    refusal = next((r for r in rejected if r.kind == ModelRefused.__name__), None)
    if refusal:
        raise ModelRefused(refusal.reason)
    cut = cuts(rejected)
    if len(cut) >= allowed:
        raise AnswerTruncated(cut[-1].reason, True)
