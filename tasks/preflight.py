"""Cheap looks at model and store before a day of traces is read for nothing; each is remembered in the store."""

from __future__ import annotations

import json

from combee_core.adapters.probe import probe_conditional_writes
from combee_core.adapters.workshop import Workshop, calls
from combee_core.base import content_hash
from combee_core.ports import Store


def preflight(shop: Workshop) -> None:
    """Ask the model's server whether it is there and knows the model; once a store, model and settings.

    Raises `ModelUnusable` naming what is wrong.
    """
    key = f"preflight/model-{content_hash(shop.client.model.name, shop.settings.model.identity())[:24]}"
    if shop.store.read(key) is None:
        calls(shop.client.model.preflight())
        shop.store.create(key, json.dumps({"model": shop.client.model.name}).encode())


def probe(store: Store) -> None:
    """Make sure, once, that the store refuses a second create and a stale replace: versions rest on both.

    Raises `StoreError` for a server that ignores conditional headers.
    """
    if store.read("preflight/store") is None:
        probe_conditional_writes(store)
        store.create("preflight/store", b"{}")
