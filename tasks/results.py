"""Where task results lie: under the run's own store, through a storage block that is registered for it."""

from __future__ import annotations

import os
from hashlib import sha256
from urllib.parse import unquote, urlparse

from prefect.filesystems import LocalFileSystem, RemoteFileSystem


def register(store: str) -> str:
    """Save the block of this store on the server and return its slug. Credentials stay in the environment.

    Raises `ValueError` for a memory store: results that end with the process cannot be resumed from.
    """
    name = "combee-" + sha256(store.encode()).hexdigest()[:12]
    block: LocalFileSystem | RemoteFileSystem
    if store.startswith("file://"):
        block = LocalFileSystem(basepath=unquote(urlparse(store).path) + "/results")
    elif store.startswith("s3://"):
        endpoint = os.environ.get("AWS_ENDPOINT_URL")
        options = {"client_kwargs": {"endpoint_url": endpoint}} if endpoint else {}
        block = RemoteFileSystem(basepath=f"{store}/results", settings={"use_listings_cache": False, **options})
    else:
        raise ValueError(f"{store} does not outlive its process; use file:// or s3://")
    block.save(name, overwrite=True)
    return f"{block.get_block_type_slug()}/{name}"
