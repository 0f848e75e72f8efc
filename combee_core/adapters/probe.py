"""Does a store keep its promise? Several S3 servers take a conditional write and ignore its condition."""

from __future__ import annotations

import uuid

from combee_core.errors import StoreError
from combee_core.ports import Store


def probe_conditional_writes(store: Store) -> None:
    """Return if a second create and a stale replace are refused; else raise `StoreError`.

    Costs a handful of small requests under `probe/`, and leaves nothing there.
    """
    key = f"probe/{uuid.uuid4().hex}"
    try:
        _must(store.create(key, b"first"), store, "a first write was refused")
        _must(not store.create(key, b"second"), store, "a create overwrote an object (If-None-Match is ignored)")
        first = store.read(key)
        if first is None or first.data != b"first":
            raise _broken(store, "what was written cannot be read back")
        _must(store.replace(key, b"third", first.tag), store, "a replace with the right tag was refused")
        _must(
            not store.replace(key, b"fourth", first.tag),
            store,
            "a stale replace went through (If-Match is ignored)",
        )
    finally:
        store.delete(key)


def _must(kept: bool, store: Store, what: str) -> None:
    if not kept:
        raise _broken(store, what)


def _broken(store: Store, what: str) -> StoreError:
    return StoreError(
        f"{store.uri}: {what}: the store ignores conditional headers, so two runs could overwrite "
        "each other. Use AWS S3, another server that honours them, or file:// on one machine"
    )
