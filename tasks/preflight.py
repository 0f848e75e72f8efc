"""One cheap look at the model before a day of traces is read for nothing."""

from __future__ import annotations

import json

from combee_core.adapters.workshop import Workshop, calls
from combee_core.base import sha256


def preflight(shop: Workshop) -> None:
    """Ask the model's server whether it is there and knows the model; once a store, model and settings.

    Raises `ModelUnusable` naming what is wrong. The stand-in in process needs none.
    """
    check = getattr(shop.client.model, "preflight", None)
    key = f"preflight/{sha256(shop.client.model.name, shop.settings.model.identity())[:24]}"
    if check is None or shop.store.read(key):
        return
    calls(check())
    shop.store.create(key, json.dumps({"model": shop.client.model.name}).encode())
