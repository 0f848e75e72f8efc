"""Where trace files lie: a path, a `file://` folder or an `s3://` prefix."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from combee_core.adapters.s3_connect import connect
from combee_core.adapters.s3_errors import Missing
from combee_core.errors import UsageError
from combee_core.types import TraceFile, Unread

if TYPE_CHECKING:
    from combee_core.adapters.s3_client import S3Client

LARGEST = 512 * 2**20
"""Bytes, unpacked, of the largest file that is read: there are sessions of many gigabytes."""

Wanted = Callable[[datetime], bool]
"""Whether a file is to be read, by the time of its last change."""

_GZIP = b"\x1f\x8b"
_FORMS = "a path, file://./folder, file:///absolute/folder or s3://bucket/prefix"


def find_files(uri: str, largest: int = LARGEST, wanted: Wanted = lambda _: True) -> Iterator[TraceFile | Unread]:
    """Every file at or below `uri` that is `wanted`, in the order of their names; gzip is unpacked, whatever the name.

    What cannot be read is an `Unread`. Raises UsageError where nothing is there at all, and for a bucket
    StoreDenied, StoreUnavailable or StoreError.
    """
    scheme, _, rest = uri.rpartition("://")
    if not rest:
        raise UsageError(f"{uri!r} names no place: write {_FORMS}")
    if scheme == "s3":
        return _objects(uri, *rest.rstrip("/").partition("/")[::2], largest, wanted)
    if scheme in ("", "file"):
        return _files(Path(unquote(rest) if scheme else uri), largest, wanted)
    raise UsageError(f"{uri}: unknown kind of place: write {_FORMS}")


def _files(root: Path, largest: int, wanted: Wanted) -> Iterator[TraceFile | Unread]:
    if not root.exists():
        raise UsageError(f"{root}: no such file or folder: write {_FORMS}")
    if not root.is_dir():
        yield from _load(root, largest, wanted)
        return
    refused: list[OSError] = []
    inside = root.resolve()
    for path in _walk(root, refused):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            yield Unread(where=_name(path), reason="a symbolic link out of the folder is not followed")
        elif not path.is_dir():
            yield from _load(path, largest, wanted)
    for error in refused:
        yield Unread(where=str(error.filename), reason=f"the folder cannot be read: {error.strerror}")


def _walk(root: Path, refused: list[OSError]) -> Iterator[Path]:
    """Files and links below a folder, sorted. Linked folders are listed, not entered: some are circles."""
    waiting = [str(root)]
    while waiting:
        here = waiting.pop()
        if here != str(root) and (os.path.islink(here) or not os.path.isdir(here)):
            yield Path(here)
            continue
        try:
            waiting += sorted((os.path.join(here, name) for name in os.listdir(here)), reverse=True)
        except OSError as error:
            refused.append(error)


def _load(path: Path, largest: int, wanted: Wanted) -> Iterator[TraceFile | Unread]:
    name = _name(path)
    try:
        state = path.stat()
        modified = datetime.fromtimestamp(state.st_mtime, UTC)
        # A pipe has no end to wait for.
        if not stat.S_ISREG(state.st_mode):
            yield Unread(where=name, reason="not a regular file")
        elif wanted(modified):
            if state.st_size > largest:
                yield _too_large(name, f"{state.st_size:,} bytes", largest)
            else:
                yield _unpacked(name, path.read_bytes(), modified, largest)
    except OSError as error:
        yield Unread(where=name, reason=f"cannot be read: {error.strerror}")


def _name(path: Path) -> str:
    """The path as text that can be stored; names of files need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _objects(uri: str, bucket: str, prefix: str, largest: int, wanted: Wanted) -> Iterator[TraceFile | Unread]:
    if not bucket:
        raise UsageError(f"{uri}: names no bucket: write {_FORMS}")
    client, found = connect(bucket), False
    for entry in client.listing(prefix):
        if not _is_below(entry["Key"], prefix):
            continue
        found, name = True, f"s3://{bucket}/{entry['Key']}"
        if not wanted(entry["LastModified"].astimezone(UTC)):
            continue
        if entry["Size"] > largest:
            yield _too_large(name, f"{entry['Size']:,} bytes", largest)
        else:
            yield _fetch(client, entry, name, largest)
    if not found:
        raise UsageError(f"{uri}: nothing there: check the bucket and the prefix")


def _fetch(client: S3Client, entry: dict[str, Any], name: str, largest: int) -> TraceFile | Unread:
    try:
        data, _ = client.get(entry["Key"])
    except Missing:
        return Unread(where=name, reason="gone since it was listed")
    return _unpacked(name, data, entry["LastModified"].astimezone(UTC), largest)


def _is_below(key: str, prefix: str) -> bool:
    """True for the object `prefix` and all below it, but for the empty ones that stand for folders."""
    return (key == prefix or key.startswith(f"{prefix}/" if prefix else "")) and not key.endswith("/")


def _unpacked(name: str, data: bytes, modified: datetime, largest: int) -> TraceFile | Unread:
    if data.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(largest + 1)
        except (OSError, EOFError, zlib.error) as error:
            return Unread(where=name, reason=f"damaged gzip: {error}")
        if len(data) > largest:
            return _too_large(name, "more when unpacked", largest)
    return TraceFile(uri=name, data=data, modified=modified)


def _too_large(name: str, size: str, largest: int) -> Unread:
    return Unread(where=name, reason=f"too large: {size}, at most {largest:,} bytes are read")
