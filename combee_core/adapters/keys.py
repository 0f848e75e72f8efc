"""What a store's key may look like, the same for every store."""

from __future__ import annotations

from combee_core.errors import UsageError

OWN = ".combee-"
"""Names that begin so belong to the store itself (temporary and lock files) and are no keys."""


def check_key(key: str) -> str:
    """The key itself; `UsageError` if it is absolute, climbs out of the store or is no text."""
    parts = key.split("/")
    if "" in parts:
        raise UsageError(f"store key {key!r}: a key is words between single slashes, such as 'runs/a/plan.json'")
    if "." in parts or ".." in parts:
        raise UsageError(f"store key {key!r}: '.' and '..' are not allowed, so that no key leaves the store")
    if any(part.startswith(OWN) for part in parts):
        raise UsageError(f"store key {key!r}: names that begin with {OWN!r} are kept for the store itself")
    if "\0" in key or not _encodable(key):
        raise UsageError(f"store key {key!r}: not valid Unicode text")
    return key


def check_prefix(prefix: str) -> str:
    """The prefix itself; like a key, but it may be empty or end in a slash."""
    if prefix:
        check_key(prefix.removesuffix("/"))
    return prefix


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
