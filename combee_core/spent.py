"""What was spent, by run and by day, as every process that shares a store writes it down.

runs/<run>/spent/<invocation>-<writer>.json       one invocation's part of a run, in one process
spent/<YYYY-MM-DD>/<run>-<invocation>-<writer>.json   what of it fell on that day (UTC)

A record holds what is reserved for calls in flight too: what was in flight when a process was killed counts as spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from combee_core.base import Noun
from combee_core.ports import Store
from combee_core.saving import read_record, write_record


class Spent(Noun):
    """US dollars, tokens of input and output, requests, and seconds of wall time."""

    cost: float = 0.0
    tokens: int = 0
    calls: int = 0
    seconds: float = 0.0

    def __sub__(self, other: Spent) -> Spent:
        return self + Spent(cost=-other.cost, tokens=-other.tokens, calls=-other.calls, seconds=-other.seconds)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            cost=self.cost + other.cost,
            tokens=self.tokens + other.tokens,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
        )


NOTHING = Spent()


class Share(Noun):
    """One process's part of what an invocation of a run spent."""

    run: str
    invocation: str
    spent: Spent


def of_run(run: str) -> str:
    """The folder of a run's records."""
    return f"runs/{run}/spent/"


def of_day(day: date) -> str:
    """The folder of a day's records."""
    return f"spent/{day.isoformat()}/"


def write_share(store: Store, key: str, share: Share) -> None:
    """Write a record, in place of the one before; each has one writer. Raises `StoreError`."""
    data = write_record(share)
    blob = store.read(key)
    while not store.replace(key, data, blob.tag if blob else None):
        blob = store.read(key)


def read_shares(store: Store, folder: str, without: str = "") -> list[Share]:
    """All records of a folder but the one at `without`. Raises `StoreError`."""
    blobs = (store.read(key) for key in store.list(folder) if key != without)
    read = (read_record(Share, blob.data) for blob in blobs if blob)
    return [share for share in read if share]


def together(shares: Iterable[Share], *, invocation: str = "") -> Spent:
    """The sum; processes of one invocation work side by side, so that of their seconds the most count.

    The seconds of `invocation` itself are left out: its own clock knows them better.
    """
    total, longest = NOTHING, dict[tuple[str, str], float]()
    for share in shares:
        total += share.spent
        whose = (share.run, share.invocation)
        if not invocation or share.invocation != invocation:
            longest[whose] = max(longest.get(whose, 0.0), share.spent.seconds)
    return total.model_copy(update={"seconds": sum(longest.values())})
