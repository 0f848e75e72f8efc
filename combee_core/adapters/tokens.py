"""Counts tokens: with the model's own tokenizer where litellm has it, else by a rule, marked an estimate."""

from __future__ import annotations

from combee_core.adapters.load_litellm import load_litellm, model_info
from combee_core.base import estimate
from combee_core.errors import ModelUnusable

_OWN_TOKENIZER = ("openai", "azure", "text-completion-openai")


def count_tokens(text: str | None, model: str) -> tuple[int, bool]:
    """Tokens of a text for a model, and whether the number is exact. No text counts 0. Asks no network.

    A model that litellm does not know is counted by `estimate`; one that it knows, but whose tokenizer it
    does not carry, by litellm with a stand-in, also marked an estimate.
    """
    if not text:
        return 0, True
    if model.startswith("simulated/"):
        return estimate(text), False
    try:
        return _by_litellm(text, model)
    except ModelUnusable:
        return estimate(text), False


def _by_litellm(text: str, model: str) -> tuple[int, bool]:
    litellm = load_litellm()
    info = model_info(litellm, model)
    if info is None:
        return estimate(text), False
    well_formed = text.encode("utf-8", "replace").decode()
    short = len(text) <= litellm.constants.TOKEN_COUNTER_MAX_EXACT_CHARS
    count = int(litellm.token_counter(model=model.split("/")[-1], text=well_formed))
    return count, short and info.get("litellm_provider") in _OWN_TOKENIZER
