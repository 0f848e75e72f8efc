"""Cheap looks at model and store before a day of traces is read for nothing; each is remembered in the store."""

from __future__ import annotations

import json
import logging

from prefect import get_run_logger

from combee_core.adapters.models import check_prices
from combee_core.adapters.probe import probe_conditional_writes
from combee_core.adapters.workshop import Workshop, calls
from combee_core.base import content_hash
from combee_core.candidates import Candidate
from combee_core.config import STAGES
from combee_core.errors import ModelError
from combee_core.events import event
from combee_core.ports import Store


def preflight(shop: Workshop) -> None:
    """Ask each model's server whether it is there and knows the model; once a store, model and settings.

    One that is not there is left out where another may be asked in its place. Raises what is wrong with the first
    otherwise, and `UsageError` for a cap in money where a price is not known.
    """
    check_prices(shop.settings)
    broken: dict[Candidate, ModelError] = {}
    for candidate in shop.client.candidates:
        try:
            _ask_server(shop, candidate)
        except ModelError as error:
            broken[candidate] = error
    for stage in STAGES:
        asked = shop.client.candidates.at(stage)
        if all(candidate in broken for candidate in asked):
            raise broken[asked[0]]
    for candidate, why in broken.items():
        event(get_run_logger(), logging.WARNING, "fallback", f"another model is asked in its place: {why}")
        candidate.sender.gate.stop.set(why)


def _ask_server(shop: Workshop, candidate: Candidate) -> None:
    key = f"preflight/model-{content_hash(candidate.model.name, candidate.settings.identity())[:24]}"
    if shop.store.read(key) is None:
        calls(candidate.model.preflight())
        shop.store.create(key, json.dumps({"model": candidate.model.name}).encode())


def probe(store: Store) -> None:
    """Make sure, once, that the store refuses a second create and a stale replace: versions rest on both.

    Raises `StoreError` for a server that ignores conditional headers.
    """
    if store.read("preflight/store") is None:
        probe_conditional_writes(store)
        store.create("preflight/store", b"{}")
