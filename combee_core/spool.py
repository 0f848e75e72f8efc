"""Nouns that lie outside memory: found by id, read one at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar, overload

from combee_core.base import Noun
from combee_core.errors import UsageError
from combee_core.records import Item

N = TypeVar("N", bound=Noun)


class Spool(Protocol[N]):
    """Takes nouns and gives back equal ones, by number."""

    def put(self, noun: N) -> int:
        """Keep it; the number to `get` it by."""

    def get(self, number: int) -> N:
        """The noun that `put` gave this number to."""


class MemorySpool(list[N]):
    """A spool for small things and tests: a list."""

    def put(self, noun: N) -> int:
        """Keep it; the number to `get` it by."""
        self.append(noun)
        return len(self) - 1

    def get(self, number: int) -> N:
        """The noun that `put` gave this number to."""
        return self[number]


class Entry(NamedTuple):
    """A noun's id and content hash, and its number in the spool."""

    id: str
    digest: str
    number: int


class Catalogue(Sequence[N]):
    """Nouns of a spool in the order of their ids. Each is read when it is asked for; memory holds ids and hashes."""

    def __init__(self, spool: Spool[N], entries: Iterable[Entry]) -> None:
        self._spool = spool
        self._entries = sorted(entries)
        self._ids = [entry.id for entry in self._entries]

    @property
    def items(self) -> tuple[Item, ...]:
        """Ids and content hashes, for a plan."""
        return tuple(Item(id=entry.id, digest=entry.digest) for entry in self._entries)

    def pick(self, wanted: Iterable[Item]) -> tuple[N, ...]:
        """The nouns of a plan's items, in the order asked for.

        Raises `UsageError` naming one that is gone, or has another content than the plan says.
        """
        return tuple(self._spool.get(self._entry(item).number) for item in wanted)

    def _entry(self, item: Item) -> Entry:
        at = bisect_left(self._ids, item.id)
        found = self._entries[at] if at < len(self._ids) and self._ids[at] == item.id else None
        if found is None or found.digest != item.digest:
            state = "has changed in" if found else "is gone from"
            raise UsageError(f"{item.id} {state} the source since the run was planned; put it back, or use --again")
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[N]:
        return (self._spool.get(entry.number) for entry in self._entries)

    @overload
    def __getitem__(self, at: int) -> N: ...

    @overload
    def __getitem__(self, at: slice) -> Catalogue[N]: ...

    def __getitem__(self, at: int | slice) -> N | Catalogue[N]:
        if isinstance(at, slice):
            return Catalogue(self._spool, self._entries[at])
        return self._spool.get(self._entries[at].number)
