"""Counts tokens with the model's own tokenizer where litellm has it, else by a rule."""

from __future__ import annotations

from combee_core.adapters.load_litellm import load_litellm, model_info
from combee_core.base import estimate, is_simulated, whole
from combee_core.errors import ModelUnusable


def count_tokens(text: str, model: str) -> int:
    """Tokens of a text for a model. Asks no network.

    By litellm for a model that it knows: exact for OpenAI's, with a stand-in tokenizer for most others. Without
    litellm, and for a model that it does not know, by `estimate`.
    """
    try:
        litellm = load_litellm()
    except ModelUnusable:
        return estimate(text)
    if model_info(litellm, model) is None:
        return estimate(text)
    return int(litellm.token_counter(model=model.split("/")[-1], text=whole(text)))


def is_counted(model: str) -> bool:
    """Whether `count_tokens` asks litellm about this model, and does not estimate. May be slow at first."""
    if is_simulated(model):
        return False
    try:
        return model_info(load_litellm(), model) is not None
    except ModelUnusable:
        return False
