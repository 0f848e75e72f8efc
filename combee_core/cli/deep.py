"""`combee doctor --deep`: the checks that cost something: a call to the model, objects in the store, many questions."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from combee_core.base import is_simulated
from combee_core.config import ModelSettings, RunRequest
from combee_core.errors import CombeeError

Checks = dict[str, Callable[[], str]]

_LEAST = 1 << 30
"""Bytes that must be free."""


def checks(request: RunRequest, *, days: bool) -> Checks:
    """By name; each returns a sentence or raises `CombeeError`. What needs a server fails where none is running.

    `days` looks at the last ones of the request's playbook, in the time zone of its source.
    """
    models = request.settings.model.everyone
    named = Counter(one.model for one in models)
    found = {f"call {_where(one) if named[one.model] > 1 else one.model}": _asking(one) for one in models}
    return {**found, **_of_store(request, days), **_of_server(request.store)}


def _where(one: ModelSettings) -> str:
    return f"{one.model} at {one.api_base or 'its provider'}"


def _asking(model: ModelSettings) -> Callable[[], str]:
    return lambda: _call(model)


def _call(settings: ModelSettings) -> str:
    from combee_core.adapters.models import build_model
    from combee_core.adapters.workshop import calls
    from combee_core.calls import Message, Prompt, Request

    model = build_model(settings)
    if is_simulated(settings.model) and not settings.api_base:
        return "answers in process, for nothing"
    prompt = Prompt(stage="preflight", item="", messages=(Message(role="user", content="Say yes."),), answer_schema={})
    began = time.monotonic()
    answer = calls(model.complete(Request(prompt=prompt, max_output_tokens=16, timeout=settings.timeout)))
    cost = answer.usage.cost
    price = (
        "its price is not known: costs will read unknown" if cost is None else f"the call cost {cost:.6f} US dollars"
    )
    return f"answered in {time.monotonic() - began:.2f} s; {price}"


def _of_store(request: RunRequest, days: bool) -> Checks:
    from combee_core import checkup
    from combee_core.adapters import prefect_server
    from combee_core.adapters.stores import open_store

    def on(check: Callable[..., str], *more: Any) -> Callable[[], str]:
        return lambda: check(open_store(request.store), *more)

    found: Checks = {
        "round": on(checkup.round_trip, time.monotonic),
        "clock": on(checkup.skew, lambda: datetime.now(UTC)),
        "chains": on(checkup.chains),
        "backlog": on(checkup.filed),
        "disk": lambda: _disk(open_store(request.store).uri, prefect_server.home()),
    }
    if days:
        found["days"] = on(checkup.marked, request.playbook, request.source.timezone, datetime.now(UTC))
    return found


def _disk(store: str, home: Path) -> str:
    """Of the places on this machine; a bucket has no end."""
    places = [home, *([Path(unquote(urlsplit(store).path))] if store.startswith("file://") else [])]
    free = {place: shutil.disk_usage(_existing(place)).free for place in dict.fromkeys(places)}
    said = ", ".join(f"{place}: {room / _LEAST:,.1f} GiB free" for place, room in free.items())
    if min(free.values()) < _LEAST:
        raise CombeeError(f"{said}; less than 1 GiB is too little: combee gc --keep-days N, or another disk")
    return said


def _existing(place: Path) -> Path:
    return next(one for one in (place, *place.parents) if one.exists())


def _of_server(store: str) -> Checks:
    from combee_core import checkup
    from combee_core.adapters import prefect_firing, prefect_history, prefect_server, prefect_state
    from combee_core.adapters.prefect_api import PrefectApi
    from combee_core.adapters.stores import open_store

    def server() -> tuple[PrefectApi, str | None]:
        address, database = prefect_server.in_use()
        if address is None:
            raise CombeeError("no Prefect server is running; combee server up")
        return PrefectApi(address), database

    def api() -> PrefectApi:
        return server()[0]

    def orphans() -> str:
        its = open_store(store)
        return checkup.orphans(its, prefect_history.running(api(), its.uri))

    return {
        "prefect": lambda: prefect_state.about(*server()),
        "its clock": lambda: prefect_state.clock(api()),
        "watching": lambda: prefect_state.watched(api()),
        "firing": lambda: prefect_firing.firing(api()),
        "running": orphans,
    }
