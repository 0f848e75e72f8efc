"""From a model's settings to the model: the stand-in in process, or any other through litellm."""

from __future__ import annotations

import os
from collections.abc import Mapping

from combee_core.base import is_simulated
from combee_core.calls import Prices
from combee_core.config import ModelSettings, RunSettings
from combee_core.errors import UsageError
from combee_core.ports import LanguageModel


def build_model(settings: ModelSettings) -> LanguageModel:
    """The stand-in for `simulated/…`, litellm for everything else."""
    if is_simulated(settings.model) and not settings.api_base:
        from combee_core.simulation.model import SimulatedModel

        return SimulatedModel(settings.model)
    from combee_core.adapters.litellm_model import LitellmModel

    return LitellmModel(settings.model, _address(settings, os.environ))


def prices_of(settings: ModelSettings) -> Prices | None:
    """What a model's tokens cost: as the settings say, else as is known of it, else None. May be slow."""
    return settings.prices or build_model(settings).prices


def check_prices(settings: RunSettings) -> None:
    """Raise `UsageError` where there is a cap in money and a model that may be asked has no known price."""
    if settings.budget.cost is None and settings.day_budget.cost is None:
        return
    unknown = [one.model for one in settings.model.everyone if prices_of(one) is None]
    if unknown:
        raise UsageError(
            f"a cap in money needs the price of every model, and none is known of {', '.join(unknown)}: give the first "
            f"model's, {settings.model.model}, with --price INPUT,OUTPUT (US dollars for a million tokens); prices of "
            "fallbacks come from litellm alone. Or cap tokens with --max-tokens"
        )


def _address(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """The server's address, also where litellm would take it from the environment.

    It is part of the model's name: answers of one server must not be taken for those of another.
    """
    if settings.api_base or not settings.model.startswith("openai/"):
        return settings.api_base
    return environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or None
