"""A closer look at a store: is it quick, does its clock agree, is what it holds whole? A sentence for each.

Each check returns what it found, or raises `CombeeError` with the way out.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from combee_core import backlog
from combee_core.days import zone
from combee_core.errors import CombeeError, StoreError
from combee_core.ports import Store
from combee_core.runs import runs_of
from combee_core.versions import Versions, playbooks

Clock = Callable[[], float]
"""Seconds, such as `time.monotonic`."""

SKEW = 30.0
"""Seconds that clocks may differ: who holds a run is told by heartbeats with a patience of 90."""

DAYS = 7


def round_trip(store: Store, clock: Clock) -> str:
    """One object written, read, listed and deleted, with the time that each takes."""
    key, data, took = f"probe/{uuid.uuid4().hex}", b"combee doctor", dict[str, float]()
    acts: dict[str, Callable[[], object]] = {
        "write": lambda: store.create(key, data),
        "read": lambda: store.read(key),
        "list": lambda: store.list("probe/"),
        "delete": lambda: store.delete(key),
    }
    found = dict[str, object]()
    for name, act in acts.items():
        began = clock()
        found[name] = act()
        took[name] = 1000 * (clock() - began)
    read, listed = getattr(found["read"], "data", None), found["list"]
    if read != data or not isinstance(listed, list | tuple) or key not in listed or store.read(key):
        raise StoreError(f"{store.uri}: what is written, read, listed and deleted does not agree; choose another store")
    return f"{store.uri}: " + ", ".join(f"{name} {ms:.0f} ms" for name, ms in took.items())


def skew(store: Store, now: Callable[[], datetime]) -> str:
    """How far the store's clock is from `now` (aware). Raises where a live run could be taken for a dead one."""
    key, before = f"probe/{uuid.uuid4().hex}", now()
    try:
        store.create(key, b"tick")
        written = next((one.written for one in store.ages(key)), None)
    finally:
        store.delete(key)
    if written is None:
        raise StoreError(f"{store.uri}: an object that was written is not listed; choose another store")
    return agree(f"the clock of {store.uri}", written, before, now())


def agree(whose: str, told: datetime, before: datetime, after: datetime) -> str:
    """A sentence on a clock that said `told` at some time from `before` to `after`; it may know whole seconds alone."""
    behind, ahead = (before - told).total_seconds() - 1, (told - after).total_seconds()
    away = max(behind, ahead, 0.0)
    if away > SKEW:
        word = "behind" if behind > 0 else "ahead of"
        raise CombeeError(f"{whose} is {away:.0f} s {word} this machine's; let both follow a time server")
    return f"{whose} agrees within {max(1.0, away):.0f} s"


def chains(store: Store) -> str:
    """Every playbook's versions from `latest` to the first, each compared with its hash."""
    lengths = {name: sum(1 for _ in Versions(store, name).links()) for name in playbooks(store)}
    if not lengths:
        return "no playbook yet"
    shown = (f"{name}: {count} version{'s' if count > 1 else ''}" for name, count in lengths.items())
    return f"every hash right ({'; '.join(shown)})"


def filed(store: Store) -> str:
    """How many traces wait in the backlog, by playbook and fate."""
    names = sorted({key.split("/")[1] for key in store.list("backlog/")})
    counts = {name: Counter(entry.fate for entry in backlog.entries(store, name)) for name in names}
    full = {name: its for name, its in counts.items() if its}
    shown = (f"{name}: " + ", ".join(f"{n} {fate}" for fate, n in sorted(its.items())) for name, its in full.items())
    return "; ".join(shown) or "empty"


def marked(store: Store, playbook: str, timezone: str, now: datetime) -> str:
    """Which of the last days in the zone, before `now` (aware), have no marker: they were not learned to the end, or
    held no traces. Raises `UsageError` for an unknown zone.
    """
    today = now.astimezone(zone(timezone)).date()
    known = {key.rpartition("/")[2].removesuffix(".json") for key in store.list(f"days/{playbook}/")}
    last = [(today - timedelta(days=ago)).isoformat() for ago in range(DAYS, 0, -1)]
    missing = [day for day in last if day not in known]
    if len(missing) == DAYS:
        raise CombeeError(
            f"{playbook}: none of the last {DAYS} days was learned; is the deployment's schedule on, and is a worker "
            "or `combee serve` running?"
        )
    return f"{playbook}: no marker for {', '.join(missing)} (no traces, or not learned)" if missing else "all marked"


def orphans(store: Store, running: Iterable[str]) -> str:
    """Of the flow runs that a server shows as running, those whose process is gone. Raises naming them.

    One without an unfinished run may be between two of its days. Nothing is taken, so whoever begins meanwhile can.
    """
    seen, dead = 0, list[str]()
    for flow_run_id in running:
        seen += 1
        unfinished = [run for run in runs_of(store, flow_run_id) if run.result() is None]
        if unfinished and all(store.holder(run.path("owner")) is None for run in unfinished):
            dead.append(flow_run_id)
    if dead:
        raise CombeeError(f"shown as running, and nobody works on them: combee rerun {' · combee rerun '.join(dead)}")
    return f"{seen} running, none of them abandoned" if seen else "no run is under way"
