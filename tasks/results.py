"""Where task results lie: under the run's own store, through a storage block that is registered for it."""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import sha256
from typing import cast
from urllib.parse import unquote, urlparse

from prefect.blocks.core import Block
from prefect.filesystems import LocalFileSystem, RemoteFileSystem, WritableFileSystem
from prefect.settings import PREFECT_API_URL


def register(store: str) -> str:
    """Save the block of this store on the server and return its slug. Credentials stay in the environment.

    Raises `ValueError` for a memory store: results that end with the process cannot be resumed from.
    """
    return _registered(store, os.environ.get("AWS_ENDPOINT_URL"), PREFECT_API_URL.value())


@lru_cache(maxsize=8)
def _registered(store: str, endpoint: str | None, api: str | None) -> str:
    """Once for a process and a server: a backfill asks for each of its days."""
    name = "combee-" + sha256(store.encode()).hexdigest()[:12]
    block: LocalFileSystem | RemoteFileSystem
    if store.startswith("file://"):
        block = LocalFileSystem(basepath=unquote(urlparse(store).path) + "/results")
    elif store.startswith("s3://"):
        options = {"client_kwargs": {"endpoint_url": endpoint}} if endpoint else {}
        block = RemoteFileSystem(basepath=f"{store}/results", settings={"use_listings_cache": False, **options})
    else:
        raise ValueError(f"{store} does not outlive its process; use file:// or s3://")
    block.save(name, overwrite=True)
    return f"{block.get_block_type_slug()}/{name}"


@lru_cache(maxsize=8)
def block_of(slug: str) -> WritableFileSystem:
    """The registered block, loaded once: every task that is given a slug would ask the server for it, twice."""
    return cast(WritableFileSystem, Block.load(slug, _sync=True))  # type: ignore[call-arg]
