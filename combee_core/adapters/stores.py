"""From a URI to a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from combee_core.adapters.keys import check_key
from combee_core.errors import UsageError
from combee_core.ports import Store

_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://|file:", re.IGNORECASE)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_FORMS = "file://./folder, file:///absolute/folder, s3://bucket/prefix or memory://name"


def open_store(uri: str) -> Store:
    """The store at `uri`: `file://./name`, `file:///path`, a plain path, `s3://bucket/prefix` or `memory://name`.

    A relative path counts from the present folder. Nothing is read or written yet. Raises `UsageError` for
    anything else.
    """
    found = _SCHEME.match(uri)
    if found is None:
        return _file_store(uri)
    scheme = (found["scheme"] or "file").lower()
    opener = _OPENERS.get(scheme)
    if opener is None:
        raise UsageError(f"store {uri!r}: unknown kind {scheme!r}: write {_FORMS}")
    return opener(uri[found.end() :])


def _file_store(path: str) -> Store:
    from combee_core.adapters.file_store import FileStore

    if not path.strip() or "\0" in path:
        raise UsageError(f"store {path!r} names no folder: write {_FORMS}")
    return FileStore(Path(path))


def _file_uri(rest: str) -> Store:
    """A host is refused, because `file://folder` is usually meant as `file://./folder`."""
    path = rest.removeprefix("localhost") if rest.startswith("localhost/") else rest
    if not path.startswith(("/", "./", "../")) and path not in (".", ".."):
        raise UsageError(f"store file://{rest}: write file://./{rest} for a folder here, or file:///{rest}")
    return _file_store(unquote(path))


def _memory_uri(rest: str) -> Store:
    from combee_core.adapters.memory_store import MemoryStore

    name = rest.strip("/")
    if not name:
        raise UsageError("store memory:// has no name: write memory://name")
    return MemoryStore(name)


def _s3_uri(rest: str) -> Store:
    from combee_core.adapters.s3_store import S3Store

    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(f"{bucket!r} is no bucket name: write s3://bucket/prefix, keys and endpoint go to AWS_…")
    prefix = prefix.rstrip("/")
    return S3Store(bucket, check_key(prefix) if prefix else "")


_OPENERS: dict[str, Callable[[str], Store]] = {"file": _file_uri, "memory": _memory_uri, "s3": _s3_uri}
