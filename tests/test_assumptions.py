"""What an estimate rests on is told: what was seen, what is assumed, what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from curves import epochs

from combee_core.assumptions import assumptions, warnings
from combee_core.calls import FREE, Prices
from combee_core.config import ModelSettings, RunSettings
from combee_core.estimate import Basis, Estimate, Load, estimate
from combee_core.experience import Experience
from combee_core.fitting import fit

PRICES = Prices(input=2.5e-6, output=1e-5, cached=1.25e-6)


def basis(model: dict[str, Any] | None = None, **given: Any) -> Basis:
    settings = RunSettings(model=ModelSettings.model_validate({"model": "openai/gpt-4o", **(model or {})}))
    return Basis(settings=settings, **given)


def said(of: Basis, *loads: Load, whole_prompts: bool = True) -> dict[str, str]:
    """The sentences by their first word."""
    total = estimate(loads or [Load(traces=(100,) * 40)], of)
    sentences = list(assumptions(of, total, whole_prompts=whole_prompts))
    return {text.partition(":")[0]: text for text in sentences}


def test_only_a_rate_assumes_how_large_a_trace_is() -> None:
    assert "a trace has 2,000 tokens" in said(basis(), whole_prompts=False)["assumed"]
    assert "a trace has" not in said(basis())["assumed"]


def test_merges_are_a_matter_of_experience_only_where_clusters_are_merged() -> None:
    assert "merge calls for each insight" in said(basis())["assumed"]
    paper = basis().settings.model_copy(update={"merge": "paper"})
    assert "merge calls for each insight" not in said(Basis(settings=paper))["assumed"]


def test_rollouts_are_told_where_there_are_any() -> None:
    assert "an agent's answer" in said(basis(), Load(samples=(10, 10)))["assumed"]
    assert "an agent's answer" not in said(basis())["assumed"]


def test_a_guess_at_tokens_is_called_one() -> None:
    assert "a quarter of their bytes" in said(basis())["tokens"]
    assert "by the model's tokenizer" in said(basis(counted=True))["tokens"]


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        (None, "the price of openai/gpt-4o is unknown"),
        (FREE, "nothing"),
        (PRICES, "at 2.50 for a million tokens in, 1.25 where the provider has read it before, 10.00 out"),
        (Prices(input=1e-6, output=2e-6), "at 1.00 for a million tokens in, 2.00 out"),
    ],
)
def test_a_price_is_named_or_unknown(prices: Prices | None, told: str) -> None:
    assert told in said(basis(prices=prices))["cost"]


def test_the_time_is_that_of_the_paper_until_it_was_observed_or_measured() -> None:
    assert "24 s, a curate or merge call 26 s (Combee, table 12); " in said(basis())["time"]
    seen = Experience(pace=0.5, observed=("pace",), runs=("r",))
    assert "table 12), times 0.50 as observed" in said(basis(experience=seen))["time"]
    measured = fit(epochs({5: 400.0, 10: 220.0, 20: 120.0}, 100), 100)
    curve = said(basis(fit=measured, measured_in="r7"))["time"]
    assert curve == "time: by the curve that run r7 measured on batches of 5 to 20"


def test_limits_of_the_provider_are_named() -> None:
    limited = said(basis({"rpm": 500, "tpm": 30_000, "concurrency": 8, "max_concurrency": 16}))["time"]
    assert "8 to 16 calls in flight, 500 requests a minute, 30,000 tokens a minute" in limited


def test_what_is_not_counted_is_said() -> None:
    assert "retries" in said(basis())["not counted"]


def test_nothing_to_warn_of() -> None:
    assert list(warnings(Estimate(), basis())) == []


def test_what_does_not_fit_is_warned_of() -> None:
    tight = basis(limit=2000)
    told = list(warnings(Estimate(too_large=3, split=4), tight))
    assert told == [
        "3 traces are too large for a call of 2,000 tokens and will be skipped",
        "4 curate calls more than there are groups: some are too large for 2,000 tokens",
    ]
