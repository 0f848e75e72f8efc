"""The probe passes every honest store and catches servers that ignore the conditions of a write."""

from __future__ import annotations

import http.server
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from combee_core.adapters.memory_store import MemoryStore
from combee_core.adapters.probe import probe_conditional_writes
from combee_core.adapters.stores import open_store
from combee_core.errors import StoreDenied, StoreError
from combee_core.ports import Store


def test_an_honest_store_passes_and_nothing_is_left(store: Store) -> None:
    probe_conditional_writes(store)
    assert store.list("") == []


class CarelessCreate(MemoryStore):
    """Overwrites what is there."""

    def create(self, key: str, data: bytes) -> bool:
        held = self.read(key)
        return super().replace(key, data, held.tag if held else None)


class CarelessReplace(MemoryStore):
    """Does not look at the tag."""

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        held = self.read(key) if tag else None
        return super().replace(key, data, held.tag if held else None)


class Forgetful(MemoryStore):
    """Takes everything and keeps nothing."""

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        return tag is None and not self.list("probe/") and super().replace(key + "-lost", data, None)


@pytest.mark.parametrize(
    ("kind", "words"),
    [(CarelessCreate, "If-None-Match is ignored"), (CarelessReplace, "If-Match is ignored")],
)
def test_a_store_that_ignores_a_condition_is_refused_and_left_clean(kind: type[MemoryStore], words: str) -> None:
    store = kind(uuid.uuid4().hex)
    with pytest.raises(StoreError, match="ignores conditional headers") as refused:
        probe_conditional_writes(store)
    assert words in str(refused.value)
    assert store.uri in str(refused.value)
    assert store.list("") == []


def test_a_store_that_cannot_read_its_own_writes_is_refused() -> None:
    with pytest.raises(StoreError, match="cannot be read back"):
        probe_conditional_writes(Forgetful(uuid.uuid4().hex))


class CarelessServer(http.server.BaseHTTPRequestHandler):
    """Just enough of S3 to store objects, with every condition ignored, as some servers do."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        found = self.objects.get(self.path)
        missing = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
        self._answer(404 if found is None else 200, missing if found is None else found)

    def do_DELETE(self) -> None:
        self.objects.pop(self.path, None)
        self._answer(204, b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"{uuid.uuid5(uuid.NAMESPACE_URL, repr(self.objects.get(self.path))).hex}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def careless_server() -> Iterator[tuple[str, dict[str, bytes]]]:
    objects: dict[str, bytes] = {}
    handler = type("Handler", (CarelessServer,), {"objects": objects})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", objects
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_that_ignores_conditional_headers_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with careless_server() as (url, objects):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(StoreError, match=r"s3://bucket/x: .*If-None-Match is ignored"):
            probe_conditional_writes(open_store("s3://bucket/x"))
        assert objects == {}


def test_a_refusal_during_the_probe_is_told_as_such(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-wrong")
    with pytest.raises(StoreDenied):
        probe_conditional_writes(open_store(s3_uri))
