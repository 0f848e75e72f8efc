"""What a request may take at most, and what it took: in money, tokens and calls."""

from __future__ import annotations

from datetime import datetime, timedelta

from combee_core.base import estimate
from combee_core.calls import Completion, Prices, Request, Usage
from combee_core.errors import ModelBusy
from combee_core.spent import Spent

MARGIN = 2
"""Times the estimate of a prompt's tokens that is reserved: estimates were seen to be too low by 1.77."""


_LONGEST = 365 * 86_400.0
"""Seconds beyond which no moment is named."""


def most(request: Request, prices: Prices | None) -> Spent:
    """The greatest that a request can be: its prompt with a margin, and an answer as long as it may become."""
    read, written = MARGIN * estimate(request.prompt.text), request.max_output_tokens
    cost = prices.cost(Usage(input_tokens=read, output_tokens=written)) if prices else None
    return Spent(cost=cost or 0.0, tokens=read + written, calls=1)


def taken(request: Request, completion: Completion, prices: Prices | None) -> Spent:
    """What an answer took; where the provider does not say, an estimate from the texts counts."""
    usage = completion.usage
    said = (completion.text or "") + (completion.reasoning or "")
    read = estimate(request.prompt.text) if usage.input_tokens is None else usage.input_tokens
    written = estimate(said) if usage.output_tokens is None else usage.output_tokens
    guessed = prices.cost(usage.model_copy(update={"input_tokens": read, "output_tokens": written})) if prices else None
    cost = usage.cost if usage.cost is not None else guessed
    return Spent(cost=cost or 0.0, tokens=read + written, calls=1)


def priced(completion: Completion, prices: Prices | None) -> Completion:
    """The completion with its cost at these prices, where there are any."""
    if prices is None:
        return completion
    usage = completion.usage.model_copy(update={"cost": prices.cost(completion.usage)})
    return completion.model_copy(update={"usage": usage})


def away_until(busy: ModelBusy, now: datetime, budget: float) -> str:
    """Why a provider that asks to wait for long is asked no more, and when to try again. `budget` in seconds."""
    pause = busy.retry_after or 0.0
    soon = now + timedelta(seconds=min(pause, _LONGEST))
    when = soon.strftime("%Y-%m-%d %H:%M:%S %Z").strip() if pause <= _LONGEST else "a year"
    return (
        f"{busy}: it asks to wait for {pause:,.0f} s, where one call may wait for {budget:,.0f} s in all "
        f"(--wait-budget); what is paid for is saved: try again after {when}"
    )
