"""File operations that are done or not done, never half, and that survive a loss of power."""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from combee_core.adapters.keys import OWN
from combee_core.errors import StoreDenied, StoreError

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn every `OSError` inside into a `StoreError` (`StoreDenied` for a refusal) that names `path`."""
    try:
        yield
    except OSError as error:
        what = f"{path}: {error.strerror or error}"
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            hint = f"give user {os.geteuid()} access to it, or choose another store"
            raise StoreDenied(f"{what}: {hint}") from error
        hint = ": free some space, or choose another store" if error.errno in _FULL else ""
        raise StoreError(what + hint) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock while inside; threads and processes of this machine wait for it."""
    lock = os.open(folder / f"{OWN}lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def written(folder: Path, data: bytes) -> Iterator[Path]:
    """A temporary file with `data`, on the disk; gone on leaving unless moved. Its mode is the umask's."""
    temporary = folder / f"{OWN}{uuid.uuid4().hex}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def link(temporary: Path, path: Path) -> bool:
    """Give the file a second name, in one step; False if the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise StoreError(f"{path}: this file system has no hard links: keep the store on another") from error
        raise
    sync(path.parent)
    return True


def move(temporary: Path, path: Path) -> None:
    """Put the file in the place of `path`, in one step."""
    os.replace(temporary, path)
    sync(path.parent)


def make_folder(folder: Path) -> None:
    """Make it and its parents, each noted on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(folder: Path) -> None:
    """Bring the folder's names onto the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def files(folder: Path) -> Iterator[Path]:
    """All files below `folder` but the store's own; a folder that is not there has none."""
    for where, _, names in os.walk(folder, onerror=_unless_absent):
        yield from (Path(where, name) for name in names if not name.startswith(OWN))


def hold(path: Path, text: str) -> int:
    """Lock the file, write `text` into it and return its open handle: closing it, or dying, frees the lock.

    Raises `BlockingIOError` while another handle has the lock.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(handle, path):
                os.ftruncate(handle, 0)
                os.write(handle, text.encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def hold_for_child(path: Path) -> int:
    """Lock the file, once nobody else has it, and return a handle that a child process may inherit."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.ftruncate(handle, 0)
    return handle


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock; looking hinders nobody else who looks."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def is_at(handle: int, path: Path) -> bool:
    """True if the open file still has that name (it may have been removed, and the name used again)."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
