"""A store in a folder of this machine: `file:///…`, on Linux and macOS.

Every object is written to a temporary file, flushed to the disk and then put in place in one step, so a
reader sees all of it or nothing. A hard link creates (it fails where the name is taken), a rename replaces,
and a lock file in each folder makes compare-and-swap one step among processes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from combee_core.adapters.atomic import (
    files,
    hold,
    is_at,
    is_held,
    link,
    locked,
    make_folder,
    move,
    naming,
    sync,
    written,
)
from combee_core.adapters.keys import check_key, check_prefix
from combee_core.adapters.lease import held_by
from combee_core.ports import Aged, Blob

_LOOKS = (0.01, 0.05)
"""Seconds between tries to take a lease: somebody may only have looked whether it is held."""


class FileStore:
    """The `Store` under one folder, which is made by the first write."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root))

    @property
    def uri(self) -> str:
        """`file:///…`, percent-encoded, without a trailing slash."""
        return self._root.as_uri()

    def read(self, key: str) -> Blob | None:
        """The object, or None where there is none."""
        path = self._path(key)
        with naming(path):
            return _load(path)

    def create(self, key: str, data: bytes) -> bool:
        """Write only if absent. True if `data` is what the key holds afterwards."""
        path = self._path(key)
        with naming(path):
            make_folder(path.parent)
            with written(path.parent, data) as temporary:
                return link(temporary, path) or _holds(path, data)

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        """Write only if the object still has `tag` (None: is absent). True if it holds `data` afterwards."""
        if tag is None:
            return self.create(key, data)
        path = self._path(key)
        with naming(path):
            if not path.is_file():
                return False
            with locked(path.parent):
                held = _load(path)
                if held is None or held.tag != tag:
                    return _holds(path, data)
                with written(path.parent, data) as temporary:
                    move(temporary, path)
        return True

    def list(self, prefix: str) -> Sequence[str]:
        """Keys that start with `prefix`, sorted."""
        folder = self._root / check_prefix(prefix).rpartition("/")[0]
        with naming(folder):
            keys = [file.relative_to(self._root).as_posix() for file in files(folder)]
        return sorted(key for key in keys if key.startswith(prefix))

    def ages(self, prefix: str) -> Iterator[Aged]:
        """Key, time of the last write and size of each object that starts with `prefix`."""
        for key in self.list(prefix):
            path = self._root / key
            with naming(path), suppress(FileNotFoundError):
                found = path.stat()
                yield Aged(key, datetime.fromtimestamp(found.st_mtime, UTC), found.st_size)

    def delete(self, key: str) -> None:
        """Remove; absent is fine."""
        path = self._path(key)
        with naming(path):
            if path.is_file():
                with locked(path.parent):
                    path.unlink(missing_ok=True)
                sync(path.parent)

    @contextmanager
    def lease(self, key: str, holder: str) -> Iterator[None]:
        """Hold `key` while inside; `RunHeld` with the holder's text if a live process has it.

        It is a lock of the kernel on the key's own file, so that a killed process frees it at once.
        """
        path = self._path(key)
        with naming(path):
            handle = self._hold(path, key, holder)
        try:
            yield
        finally:
            with naming(path):
                _let_go(handle, path)

    def holder(self, key: str) -> str | None:
        """Who holds `key` now; None where no live process does."""
        path = self._path(key)
        with naming(path):
            return _words(path) if is_held(path) else None

    def _hold(self, path: Path, key: str, holder: str) -> int:
        make_folder(path.parent)
        for pause in _LOOKS:
            with suppress(BlockingIOError):
                return hold(path, holder)
            time.sleep(pause)
        try:
            return hold(path, holder)
        except BlockingIOError:
            raise held_by(_words(path), self.uri, key) from None

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)


def _words(path: Path) -> str:
    blob = _load(path)
    return blob.data.decode(errors="replace") if blob else ""


def _load(path: Path) -> Blob | None:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return Blob(data, hashlib.sha256(data).hexdigest())


def _holds(path: Path, data: bytes) -> bool:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "there is a folder where the object should be")
    held = _load(path)
    return held is not None and held.data == data


def _let_go(handle: int, path: Path) -> None:
    """Remove the file before the lock is freed, or the next holder's file would be removed."""
    try:
        if is_at(handle, path):
            path.unlink()
    finally:
        os.close(handle)
