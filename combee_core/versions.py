"""Playbook versions in a store: immutable objects and one pointer, moved by compare-and-swap."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from combee_core.base import Noun
from combee_core.errors import StoreError, UsageError
from combee_core.ports import Store
from combee_core.types import SetAside

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDER = "playbooks/"
_SHOWN = 12
_TRIES = 20
T = TypeVar("T")


class Version(Noun):
    """One published version. `day` is the one that it was learned from, `as_of` the newest of all before it.

    `models` answered for this version, `learned_by` for it and all before it; an import adds none. `set_aside` is
    what the run could not apply because `latest` had moved meanwhile.
    """

    playbook: str
    version: int
    parent: int
    digest: str
    learner: str
    state: dict[str, Any]
    run: str = ""
    flow_run_id: str = ""
    models: tuple[str, ...] = ()
    learned_by: tuple[str, ...] = ()
    day: date | None = None
    as_of: date | None = None
    origin: str = "learned"
    note: str = ""
    set_aside: tuple[SetAside, ...] = ()
    previous: str | None = None


class Pointer(Noun):
    """`latest.json`. The fresh `writer_id` makes every body, and so every ETag, unique."""

    version: int
    key: str
    sha256: str
    writer_id: str


def playbooks(store: Store) -> list[str]:
    """The names of all playbooks of a store, sorted."""
    return sorted({key.split("/")[1] for key in store.list(_FOLDER)})


@dataclass(frozen=True)
class Versions:
    """The versions of one playbook. Raises `StoreError` for an object that is damaged, by name and by content."""

    store: Store
    playbook: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.playbook):
            raise UsageError(f"{self.playbook!r} is no playbook name: use letters, digits, dots, dashes, underscores")

    @property
    def _home(self) -> str:
        return f"{_FOLDER}{self.playbook}"

    def latest(self) -> Version | None:
        """The newest version, its hash checked; None before the first."""
        pointer, _ = self._pointer()
        return self._load(pointer.key, pointer.sha256) if pointer else None

    def get(self, number: int) -> Version:
        """That version on the chain that ends in `latest`. Raises `UsageError` where there is none."""
        for version in self.chain():
            if version.version == number:
                return version
        raise UsageError(f"playbook {self.playbook} has no version {number} in {self.store.uri}")

    def chain(self) -> Iterator[Version]:
        """From `latest` back to the first version."""
        return (version for _, version in self.links())

    def links(self) -> Iterator[tuple[str, Version]]:
        """The chain with the key of each version in the store."""
        pointer, _ = self._pointer()
        key, digest = (pointer.key, pointer.sha256) if pointer else (None, "")
        while key is not None:
            version = self._load(key, digest)
            yield key, version
            key, digest = version.previous, ""

    def publish(self, draft: Version) -> Version | None:
        """Write `draft` and move `latest` to it from its parent; None if `latest` is not the parent any more."""
        pointer, tag = self._pointer()
        if (pointer.version if pointer else 0) != draft.parent:
            return None
        version = draft.model_copy(update={"previous": pointer.key if pointer else None})
        data = version.model_dump_json().encode()
        digest = sha256(data).hexdigest()
        key = f"{self._home}/versions/{version.version:08d}-{digest[:_SHOWN]}.json"
        if not self.store.create(key, data):
            raise StoreError(f"{self.store.uri}/{key} holds something else than its name says; move it away")
        moved = Pointer(version=version.version, key=key, sha256=digest, writer_id=uuid.uuid4().hex)
        won = self.store.replace(f"{self._home}/latest.json", moved.model_dump_json().encode(), tag)
        return version if won else None

    def advance(self, attempt: Callable[[Version | None], T | None]) -> T:
        """What `attempt(latest)` gives; it is called again for as long as it gives None, as `publish` does for a loser.

        Raises `StoreError` if other writers keep winning.
        """
        for _ in range(_TRIES):
            done = attempt(self.latest())
            if done is not None:
                return done
        raise StoreError(f"{self.store.uri}/{self._home}/latest.json moved {_TRIES} times in a row; run again")

    def _pointer(self) -> tuple[Pointer | None, str | None]:
        key = f"{self._home}/latest.json"
        blob = self.store.read(key)
        if blob is None:
            return None, None
        try:
            return Pointer.model_validate_json(blob.data), blob.tag
        except ValidationError as error:
            raise self._damaged(key, "is no pointer to a version") from error

    def _load(self, key: str, digest: str = "") -> Version:
        """The version under `key`, compared with its hash: the whole one where it is known, else the name's part."""
        blob = self.store.read(key)
        if blob is None:
            raise self._damaged(key, "is missing")
        found, named = sha256(blob.data).hexdigest(), key.removesuffix(".json").rpartition("-")[2]
        if found[:_SHOWN] != named or (digest and found != digest):
            raise self._damaged(key, "does not have the hash that it was published with")
        try:
            return Version.model_validate_json(blob.data)
        except ValidationError as error:
            raise self._damaged(key, "was written by another release of this program") from error

    def _damaged(self, key: str, how: str) -> StoreError:
        return StoreError(f"{self.store.uri}/{key} {how}; restore it from a copy of the store")
