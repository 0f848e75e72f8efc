"""A spool in a temporary file that has no name: it is gone when it is closed and when the process ends, however."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Generic, TypeVar

from pydantic_core import PydanticSerializationError

from combee_core.base import Noun
from combee_core.errors import StoreError
from combee_core.saving import write_record

N = TypeVar("N", bound=Noun)


class FileSpool(Generic[N]):
    """Nouns of one kind as JSON in `folder` (by default the system's for temporary files); 8 bytes each in memory.

    One thread at a time may `put`; any number may `get`. Halves of characters, which no encoding has, come back
    joined or replaced. Raises `StoreError` naming the folder where it cannot be written, as when the disk is full.
    """

    def __init__(self, kind: type[N], folder: str | None = None) -> None:
        self._kind = kind
        self._folder = folder or tempfile.gettempdir()
        self._ends = array("Q", [0])
        with self._naming():
            self._file = tempfile.TemporaryFile(prefix="combee-", dir=self._folder)  # noqa: SIM115  open as long as the spool
        self.close = weakref.finalize(self, _close, self._file)
        """Give the file's space back now; by itself that happens when nobody holds the spool any more."""

    def put(self, noun: N) -> int:
        """Keep it; the number to `get` it by."""
        data = _json(noun)
        with self._naming():
            self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))
        return len(self._ends) - 2

    def get(self, number: int) -> N:
        """The noun that `put` gave this number to, read anew."""
        start, end = self._ends[number], self._ends[number + 1]
        with self._naming():
            self._file.flush()
            # Not seek and read: those would need a lock.
            data = os.pread(self._file.fileno(), end - start, start)
        return self._kind.model_validate_json(data)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._folder}: {error.strerror or error}: the input is kept there while a run lasts; free some "
                "space, or name another folder in TMPDIR"
            ) from error


def _json(noun: Noun) -> bytes:
    try:
        return noun.model_dump_json().encode()
    except PydanticSerializationError:
        return write_record(noun)


def _close(file: IO[bytes]) -> None:
    # What a full disk still has not taken is not wanted any more.
    with suppress(OSError):
        file.close()
