"""Saved answers: each accepted answer is stored by itself before it is used, so that no paid answer is bought twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from combee_core.base import Noun, whole
from combee_core.calls import Receipt
from combee_core.ports import Store

R = TypeVar("R", bound=Noun)

Fits = Callable[[Any], bool]
"""True for an answer that can be used today."""


class SavedAnswer(Noun):
    """The JSON that was accepted and the receipt of the call."""

    answer: Any
    receipt: Receipt


class Rejection(Noun):
    """An answer that was not used: only kind, reason, receipt and beginning are kept. No receipt: none came."""

    kind: str
    reason: str = ""
    excerpt: str = ""
    receipt: Receipt | None = None


@dataclass(frozen=True)
class SavedAnswers:
    """Answers under `answers/` of a store. A record that cannot be read, or no longer fits, counts as absent."""

    store: Store

    def find(self, key: str, fits: Fits) -> tuple[SavedAnswer | None, list[Rejection]]:
        """What is known about `key`: the accepted answer, and every rejection."""
        return self.accepted(key, fits), self.rejections(key)

    def accepted(self, key: str, fits: Fits) -> SavedAnswer | None:
        """The answer saved under `key`."""
        blob = self.store.read(path_of(key))
        saved = read_record(SavedAnswer, blob.data) if blob else None
        return saved if saved and fits(saved.answer) else None

    def rejections(self, key: str) -> list[Rejection]:
        """Every rejection under `key`, in order; an unreadable one still counts as one."""
        found: list[Rejection] = []
        while blob := self.store.read(path_of(key, len(found) + 1)):
            found.append(read_record(Rejection, blob.data) or Rejection(kind="unreadable"))
        return found

    def accept(self, key: str, saved: SavedAnswer, fits: Fits) -> SavedAnswer:
        """Save, and return what the store holds: of several good answers the one that came first."""
        path, data = path_of(key), write_record(saved)
        while not self.store.create(path, data):
            blob = self.store.read(path)
            first = read_record(SavedAnswer, blob.data) if blob else None
            if first and fits(first.answer):
                return first
            if blob and self.store.replace(path, data, blob.tag):
                return saved
        return saved

    def reject(self, key: str, number: int, rejection: Rejection) -> None:
        """Count an answer that was not used, under `number` or the next free one: a restart goes on from there."""
        data = write_record(rejection)
        while not self.store.create(path_of(key, number), data):
            number += 1


def write_record(record: Noun) -> bytes:
    """A record as JSON; halves of characters, which no encoding has, are joined or replaced."""
    return whole(json.dumps(record.model_dump(mode="json"), ensure_ascii=False)).encode()


def read_record(kind: type[R], data: bytes) -> R | None:
    """The record, or None where the bytes are not one."""
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        return None


def path_of(key: str, rejected: int = 0) -> str:
    """Where an answer lies in the store, or the answer that was rejected as number `rejected` (from 1)."""
    return f"answers/{key[:2]}/{key}{f'.rejected-{rejected}' if rejected else ''}.json"
