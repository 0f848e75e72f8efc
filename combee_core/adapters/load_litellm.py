"""Loads litellm once, late, silent and without a look at the network."""

from __future__ import annotations

import gc
import logging
import os
import threading
from typing import Any

from combee_core.errors import ModelUnusable

_lock = threading.Lock()
_loaded: list[Any] = []


def load_litellm() -> Any:
    """The litellm module; the first call costs seconds of CPU, so nothing imports it before a model is used.

    Safe in threads. Raises `ModelUnusable` where it is not installed.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_import())
        return _loaded[0]


def _import() -> Any:
    # By default the import fetches a price list, and the first Anthropic call a list of headers.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    try:
        import litellm
    except ImportError as error:
        advice = "install it with: pip install 'combee-pipeline[llm]'"
        raise ModelUnusable(f"calling a model needs litellm, which is not here ({error}); {advice}") from error
    litellm.suppress_debug_info = True  # else an unknown model is reported on stdout
    litellm.disable_hf_tokenizer_download = True  # else counting tokens of a Llama asks a hub
    litellm.telemetry = False
    # Else a wish for no retries is taken for two where texts are embedded.
    litellm.DEFAULT_MAX_RETRIES = 0  # type: ignore[attr-defined]
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It makes some 300,000 objects that stay for good; the collector went through all of them every few hundred calls.
    gc.freeze()
    return litellm


def model_info(litellm: Any, model: str) -> dict[str, Any] | None:
    """litellm's row on a model (prices, limits, provider); None for one that it does not know."""
    try:
        return dict(litellm.get_model_info(model))
    except Exception:  # noqa: BLE001  litellm raises a bare Exception for an unknown model
        return None
