"""What an estimate rests on, in sentences: what was observed, what is assumed, what is not counted."""

from __future__ import annotations

from collections.abc import Iterator

from combee_core.base import is_simulated
from combee_core.config import ModelSettings
from combee_core.estimate import Basis, Estimate
from combee_core.pace import MEDIANS

_FAULTLESS = "not counted: faults, retries, slow calls sent twice, embeddings"


def assumptions(basis: Basis, total: Estimate, *, whole_prompts: bool) -> Iterator[str]:
    """Sentences about an estimate; `whole_prompts` where real traces were counted, and none is assumed."""
    made = {stage for stage, count in total.calls.items() if count.expected}
    about = {"share", "reflection", "entry", "operation", "growth", "cached"}
    about |= set() if whole_prompts else {"trace"}
    about |= {"rollout"} & made
    about |= {"merges"} if total.calls["merge"].at_most is None else set()
    yield from basis.experience.said(about)
    yield _tokens(basis, whole_prompts)
    yield _prices(basis)
    yield _time(basis)
    yield _FAULTLESS


def warnings(total: Estimate, basis: Basis) -> Iterator[str]:
    """What will go otherwise than one may think."""
    if total.too_large:
        yield f"{total.too_large:,} traces are too large for a call of {basis.limit:,} tokens and will be skipped"
    if total.split:
        yield f"{total.split:,} curate calls more than there are groups: some are too large for {basis.limit:,} tokens"


def _tokens(basis: Basis, whole_prompts: bool) -> str:
    what = "the reflectors' prompts are counted" if whole_prompts else "the prompts' instructions are counted"
    if basis.counted:
        return f"tokens: {what} by the model's tokenizer or the one that is known to be nearest"
    # Measured: 1.77 times too few for one such model.
    return f"tokens: {what} as a quarter of their bytes, for want of the model's tokenizer; it may be twice as many"


def _prices(basis: Basis) -> str:
    prices, model = basis.prices, basis.settings.model.model
    if prices is None:
        return f"cost: the price of {model} is unknown; it can be given (--price)"
    if not prices.input and not prices.output:
        return "cost: nothing, the stand-in answers"
    cached = "" if prices.cached is None else f", {_million(prices.cached)} where the provider has read it before"
    return (
        f"cost: US dollars, at {_million(prices.input)} for a million tokens in{cached}, {_million(prices.output)} out"
    )


def _million(price: float) -> str:
    return f"{1e6 * price:.2f}"


def _time(basis: Basis) -> str:
    if basis.fit:
        sizes = [point.batch_size for point in basis.fit.points]
        return f"time: by the curve that run {basis.measured_in} measured on batches of {sizes[0]} to {sizes[-1]}"
    pace, model = basis.experience.pace, basis.settings.model
    seen = f", times {pace:.2f} as observed" if "pace" in basis.experience.observed else ""
    delays = f"a reflection takes {MEDIANS['reflect']:.0f} s, a curate or merge call {MEDIANS['curate']:.0f} s"
    figures = "the lower figure is for calls that all take the same, the upper one waits for the slowest"
    stand_in = "; the stand-in itself answers at once" if is_simulated(model.model) else ""
    return f"time: {delays} (Combee, table 12){seen}; {figures}; {_limits(model)}{stand_in}"


def _limits(model: ModelSettings) -> str:
    flight = f"{model.concurrency} to {model.max_concurrency} calls in flight"
    minute = [f"{limit:,} {what} a minute" for limit, what in ((model.rpm, "requests"), (model.tpm, "tokens")) if limit]
    return ", ".join([flight, *minute])
