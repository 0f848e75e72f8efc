"""Saved answers: each accepted answer is stored by itself before it is used, so that no paid answer is bought twice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from combee_core.ports import Store
from combee_core.types import Noun, Receipt

R = TypeVar("R", bound=Noun)


class SavedAnswer(Noun):
    """The JSON that was accepted and the receipt of the call."""

    answer: Any
    receipt: Receipt


class Rejection(Noun):
    """An answer that was paid for and not used: only its kind, reason and receipt are kept."""

    kind: str
    reason: str
    receipt: Receipt


@dataclass(frozen=True)
class SavedAnswers:
    """Answers under `answers/` of a store. A record that cannot be read counts as absent."""

    store: Store

    def accepted(self, key: str) -> SavedAnswer | None:
        """The answer saved under `key`."""
        blob = self.store.read(_path(key))
        return _read(SavedAnswer, blob.data) if blob else None

    def rejections(self, key: str) -> list[Rejection]:
        """Every rejection under `key`, in order."""
        found = []
        while blob := self.store.read(_path(key, len(found) + 1)):
            unreadable = Rejection(kind="unreadable", reason="", receipt=_NO_RECEIPT)
            found.append(_read(Rejection, blob.data) or unreadable)
        return found

    def accept(self, key: str, saved: SavedAnswer) -> SavedAnswer:
        """Save, and return what the store holds: the answer that came first wins."""
        path, data = _path(key), _write(saved)
        if self.store.create(path, data):
            return saved
        blob = self.store.read(path)
        first = _read(SavedAnswer, blob.data) if blob else None
        if first is None:
            self.store.replace(path, data, blob.tag if blob else None)
        return first or saved

    def reject(self, key: str, number: int, rejection: Rejection) -> None:
        """Count an answer that was not used, so that a restart goes on from there."""
        self.store.create(_path(key, number), _write(rejection))


_NO_RECEIPT = Receipt(stage="", item="", prompt_sha="", attempt=0, accepted=False, model="")


def _path(key: str, rejected: int = 0) -> str:
    return f"answers/{key[:2]}/{key}{f'.rejected-{rejected}' if rejected else ''}.json"


def _write(record: Noun) -> bytes:
    return json.dumps(record.model_dump(mode="json"), ensure_ascii=False).encode()


def _read(kind: type[R], data: bytes) -> R | None:
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        return None
