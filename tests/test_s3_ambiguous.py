"""Writes whose answer is lost: the real server behind a proxy that swallows, refuses or cuts answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from proxy import Faults, Proxy, proxy
from seaweed import Seaweed

from combee_core.adapters.s3_store import WAITS, S3Store
from combee_core.adapters.stores import open_store
from combee_core.errors import StoreDenied, StoreUnavailable
from combee_core.ports import Store

ALWAYS = range(1, 10_000)
Through = Callable[[Faults], tuple[S3Store, Proxy]]


@pytest.fixture
def through(s3_server: Seaweed, s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Through]:
    """Opens the test's prefix through a proxy with the given faults, and does not sleep between tries."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # fewer repetitions below us, for speed
    prefix = s3_uri.rpartition("/")[2]
    with ExitStack() as stack:

        def start(faults: Faults) -> tuple[S3Store, Proxy]:
            found = stack.enter_context(proxy(s3_server.endpoint, faults))
            monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
            return S3Store(s3_server.bucket, prefix, sleep=lambda seconds: None), found

        yield start


@pytest.fixture
def direct(s3_uri: str) -> Store:
    """The same prefix without a proxy. Connects at once, while the environment names the server."""
    store = open_store(s3_uri)
    store.list("")
    return store


def data(store: Store, key: str = "k") -> bytes | None:
    blob = store.read(key)
    return None if blob is None else blob.data


def test_a_create_whose_answer_was_lost_knows_its_own_bytes(direct: Store, through: Through) -> None:
    store, seen = through(Faults(drop={1}))
    assert store.create("k", b"mine")
    assert seen.statuses("PUT") == [200, 412]
    assert data(direct) == b"mine"


def test_a_replace_whose_answer_was_lost_knows_its_own_bytes(direct: Store, through: Through) -> None:
    direct.create("k", b"old")
    store, seen = through(Faults(drop={1}))
    held = store.read("k")
    assert held is not None
    assert store.replace("k", b"mine", held.tag)
    assert seen.statuses("PUT") == [200, 412]
    assert data(direct) == b"mine"


def test_a_write_is_known_even_if_no_answer_ever_comes(direct: Store, through: Through) -> None:
    store, seen = through(Faults(drop=ALWAYS))
    assert store.create("k", b"mine")
    assert set(seen.statuses("PUT")[1:]) == {412}
    assert data(direct) == b"mine"


def test_a_lost_answer_is_no_success_where_another_writer_was_first(direct: Store, through: Through) -> None:
    direct.create("k", b"theirs")
    store, _ = through(Faults(drop=ALWAYS))
    assert not store.create("k", b"mine")
    assert data(direct) == b"theirs"


def test_a_lost_answer_to_a_stale_replace_is_no_success(direct: Store, through: Through) -> None:
    direct.create("k", b"one")
    stale = direct.read("k")
    assert stale is not None
    direct.replace("k", b"two", stale.tag)
    store, _ = through(Faults(drop=ALWAYS))
    assert not store.replace("k", b"mine", stale.tag)
    assert data(direct) == b"two"


def test_a_request_lost_on_the_way_is_sent_again(direct: Store, through: Through) -> None:
    store, _ = through(Faults(lose={1}))
    assert store.create("k", b"mine")
    assert data(direct) == b"mine"


def test_a_write_that_never_arrives_is_unavailable_and_may_be_tried_again(direct: Store, through: Through) -> None:
    store, _ = through(Faults(lose=ALWAYS))
    with pytest.raises(StoreUnavailable, match="no answer") as fault:
        store.create("k", b"mine")
    assert fault.value.retryable
    assert data(direct) is None


def test_a_replace_that_never_arrives_is_unavailable_and_changes_nothing(direct: Store, through: Through) -> None:
    direct.create("k", b"old")
    store, _ = through(Faults(lose=ALWAYS))
    held = store.read("k")
    assert held is not None
    with pytest.raises(StoreUnavailable):
        store.replace("k", b"mine", held.tag)
    assert data(direct) == b"old"


def test_a_conflict_with_a_write_under_way_is_tried_again(direct: Store, through: Through) -> None:
    store, seen = through(Faults(answer={1: (409, "ConditionalRequestConflict")}))
    assert store.create("k", b"mine")
    assert seen.statuses("PUT") == [409, 200]
    assert data(direct) == b"mine"


def test_a_conflict_that_another_writer_won_is_a_refusal(direct: Store, through: Through) -> None:
    direct.create("k", b"theirs")
    store, seen = through(Faults(answer={1: (409, "ConditionalRequestConflict")}))
    assert not store.create("k", b"mine")
    assert seen.statuses("PUT") == [409]


def test_a_conflict_without_end_is_unavailable_after_growing_waits(
    s3_server: Seaweed, s3_uri: str, through: Through
) -> None:
    naps: list[float] = []
    _, seen = through(Faults(answer=dict.fromkeys(ALWAYS, (409, "ConditionalRequestConflict"))))
    store = S3Store(s3_server.bucket, uuid.uuid4().hex, sleep=naps.append, jitter=lambda: 0.5)
    with pytest.raises(StoreUnavailable, match="another write of the same key"):
        store.create("k", b"mine")
    assert naps == [1.5 * wait for wait in WAITS]
    assert len(seen.statuses("PUT")) == len(WAITS) + 1


def test_a_server_error_is_unavailable(direct: Store, through: Through) -> None:
    store, _ = through(Faults(answer=dict.fromkeys(ALWAYS, (500, "InternalError"))))
    with pytest.raises(StoreUnavailable, match=r"InternalError \(500\)"):
        store.create("k", b"mine")
    assert data(direct) is None


def test_a_refusal_on_the_way_is_denied_at_once(direct: Store, through: Through) -> None:
    store, seen = through(Faults(answer=dict.fromkeys(ALWAYS, (403, "AccessDenied"))))
    with pytest.raises(StoreDenied):
        store.create("k", b"mine")
    assert seen.statuses("PUT") == [403]


def test_an_object_cut_off_in_the_middle_is_unavailable_and_never_half_read(direct: Store, through: Through) -> None:
    direct.create("k", b"x" * 100_000)
    store, _ = through(Faults(cut_get=ALWAYS))
    with pytest.raises(StoreUnavailable):
        store.read("k")
