"""What an S3 server refuses, and what is said about it; a refusal is never read as "not there"."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seaweed import Seaweed

from combee_core.adapters.s3_errors import Answer, Busy, Missing, Refused, explain
from combee_core.adapters.s3_store import S3Store
from combee_core.adapters.stores import open_store
from combee_core.errors import StoreDenied, StoreError, StoreUnavailable, UsageError
from combee_core.ports import Store


def each_call(store: Store) -> dict[str, Callable[[], object]]:
    """Every way to ask the store about a key that is not there, and one that is."""
    return {
        "read": lambda: store.read("missing"),
        "read present": lambda: store.read("present"),
        "create": lambda: store.create("missing", b"x"),
        "replace": lambda: store.replace("present", b"x", '"tag"'),
        "list": lambda: store.list(""),
        "delete": lambda: store.delete("present"),
        "lease": lambda: store.lease("owner", "me").__enter__(),
    }


def denied(uri: str, *words: str) -> None:
    """Every call is denied, and the message has the words."""
    for name, call in each_call(open_store(uri)).items():
        with pytest.raises(StoreDenied) as refusal:
            call()
        for word in words:
            assert word in str(refusal.value), (name, word)


def test_an_identity_without_rights_is_denied_and_told_of_list_bucket(
    s3_server: Seaweed, s3_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(s3_uri).create("present", b"x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.stranger)
    denied(s3_uri, "403", "s3:ListBucket", s3_server.bucket, "does not exist")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.key)
    assert open_store(s3_uri).list("") == ["present"]


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_denied_and_named(s3_uri: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(s3_uri).create("present", b"x")
    monkeypatch.setenv(name, "wrong-wrong-wrong")
    denied(s3_uri, name)


def test_missing_credentials_are_denied_and_named(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    denied(s3_uri, "set AWS_ACCESS_KEY_ID")


def test_a_missing_bucket_is_an_error_that_says_how_to_create_it(s3_uri: str) -> None:
    assert s3_uri
    for name, call in each_call(open_store("s3://no-such-bucket/x")).items():
        with pytest.raises(StoreError) as fault:
            call()
        assert "aws s3 mb s3://no-such-bucket" in str(fault.value), name


def test_a_bucket_is_never_created_in_silence(s3_server: Seaweed, s3_uri: str) -> None:
    assert s3_uri
    store = open_store("s3://no-such-bucket/x")
    for _ in range(2):
        with pytest.raises(StoreError, match="NoSuchBucket"):
            store.create("k", b"x")


def test_a_dead_endpoint_is_unavailable(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name, call in each_call(open_store(s3_uri)).items():
        with pytest.raises(StoreUnavailable) as fault:
            call()
        assert "check AWS_ENDPOINT_URL" in str(fault.value), name


def test_an_endpoint_that_is_no_url_is_wrong_use(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000")
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL"):
        open_store(s3_uri).read("k")


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Accepts every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_is_unavailable(
    s3_uri: str, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3_uri
    monkeypatch.setenv("AWS_ENDPOINT_URL", silent_server)
    for name, call in each_call(S3Store("bucket", "x", limit=0.2)).items():
        with pytest.raises(StoreUnavailable) as fault:
            call()
        assert "no answer: within 0.2 seconds" in str(fault.value), name


class WebServer(http.server.BaseHTTPRequestHandler):
    """Some web server that knows no S3 and has no such page."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_error(404, "no such page")

    do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def web_server() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), WebServer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_404_of_a_server_that_is_no_s3_is_not_read_as_absent(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        store = open_store(s3_uri)
        for call in (lambda: store.read("k"), lambda: store.create("k", b"x"), lambda: store.list("")):
            with pytest.raises(StoreError, match="address of an S3 server"):
                call()


def test_a_list_has_every_page(crowded: tuple[str, list[str]], s3_uri: str) -> None:
    uri, keys = crowded
    assert open_store(uri).list("many/") == keys


def test_a_folder_mark_of_a_console_is_not_listed(s3_server: Seaweed, s3_uri: str) -> None:
    s3_server.put(s3_uri.removeprefix(f"s3://{s3_server.bucket}/"), {"made-by-hand/": b""})
    assert open_store(s3_uri).list("") == []


def test_a_child_that_was_forked_connects_anew(s3_uri: str) -> None:
    store = open_store(s3_uri)
    store.create("k", b"x")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(store.read, "k").result() == store.read("k")
    if (child := os.fork()) == 0:
        signal.alarm(60)
        found = store.read("k")
        os._exit(0 if found is not None and found.data == b"x" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (412, "PreconditionFailed", Refused, ""),
        (409, "ConditionalRequestConflict", Busy, "try again"),
        (409, "OperationAborted", Busy, "try again"),
        (404, "NoSuchKey", Missing, ""),
        (404, "NoSuchBucket", StoreError, "aws s3 mb"),
        (404, "404", StoreError, "AWS_ENDPOINT_URL"),
        (403, "AccessDenied", StoreDenied, "s3:ListBucket"),
        (403, "403", StoreDenied, "s3:ListBucket"),
        (401, "Unauthorized", StoreDenied, "s3:"),
        (403, "RequestTimeTooSkewed", StoreDenied, "clock right"),
        (400, "ExpiredToken", StoreDenied, "AWS_SESSION_TOKEN"),
        (503, "SlowDown", StoreUnavailable, "try again"),
        (500, "InternalError", StoreUnavailable, "try again"),
        (429, "TooManyRequests", StoreUnavailable, "try again"),
        (400, "RequestTimeout", StoreUnavailable, "try again"),
        (501, "NotImplemented", StoreError, "conditional writes"),
        (301, "PermanentRedirect", StoreError, "AWS_DEFAULT_REGION"),
    ],
)
def test_each_answer_has_its_error_and_its_way_out(status: int, code: str, kind: type[StoreError], words: str) -> None:
    error = explain(Answer(status, code, "said the server"), "bucket", "s3://bucket/k")
    assert type(error) is kind
    assert str(error).startswith(f"s3://bucket/k: {code} ({status}): said the server")
    assert words in str(error)


@given(status=st.integers(100, 599), code=st.text(max_size=20))
def test_only_no_such_key_ever_means_absent(status: int, code: str) -> None:
    error = explain(Answer(status, code, ""), "bucket", "s3://bucket/k")
    assert isinstance(error, Missing) == (code == "NoSuchKey" and status != 412)
    assert error.retryable == isinstance(error, StoreUnavailable)
