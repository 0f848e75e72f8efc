"""One contract, kept by every store: folder, memory, and a real S3 server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from racing import blob

from combee_core.adapters.stores import open_store
from combee_core.errors import RunHeld, UsageError
from combee_core.ports import Store


def test_a_missing_key_reads_as_none(store: Store) -> None:
    assert store.read("nothing") is None
    assert store.read("no/such/folder/nothing") is None


def test_what_is_created_is_read(store: Store) -> None:
    assert store.create("a/b/c.json", b"\x00\xffdata")
    assert blob(store, "a/b/c.json").data == b"\x00\xffdata"


def test_an_empty_object_is_not_a_missing_one(store: Store) -> None:
    assert store.create("empty", b"")
    assert blob(store, "empty").data == b""
    assert not store.create("empty", b"more")


def test_a_large_object_is_read_as_it_was_written(store: Store) -> None:
    data = bytes(range(256)) * 8192
    assert store.create("large", data)
    assert blob(store, "large").data == data


def test_a_second_create_is_refused_and_changes_nothing(store: Store) -> None:
    assert store.create("k", b"first")
    assert not store.create("k", b"second")
    assert blob(store, "k").data == b"first"


def test_a_create_repeated_with_the_same_bytes_is_true(store: Store) -> None:
    assert store.create("k", b"same")
    assert store.create("k", b"same")


def test_a_replace_with_the_present_tag_moves_the_object_and_its_tag(store: Store) -> None:
    store.create("k", b"one")
    before = blob(store, "k")
    assert store.replace("k", b"two", before.tag)
    after = blob(store, "k")
    assert (after.data, after.tag == before.tag) == (b"two", False)


def test_a_stale_tag_is_refused(store: Store) -> None:
    store.create("k", b"one")
    stale = blob(store, "k").tag
    store.replace("k", b"two", stale)
    assert not store.replace("k", b"three", stale)
    assert blob(store, "k").data == b"two"


def test_a_replace_of_a_missing_object_is_refused(store: Store) -> None:
    store.create("k", b"one")
    tag = blob(store, "k").tag
    store.delete("k")
    assert not store.replace("k", b"two", tag)
    assert store.read("k") is None


def test_a_replace_without_a_tag_writes_only_where_nothing_is(store: Store) -> None:
    assert store.replace("k", b"one", None)
    assert not store.replace("k", b"two", None)
    assert blob(store, "k").data == b"one"


def test_a_replace_whose_bytes_are_already_there_is_true(store: Store) -> None:
    store.create("k", b"one")
    stale = blob(store, "k").tag
    store.replace("k", b"two", stale)
    assert store.replace("k", b"two", stale)


def test_a_deleted_key_is_absent_and_can_be_created_again(store: Store) -> None:
    store.create("a/k", b"one")
    store.delete("a/k")
    assert store.read("a/k") is None
    assert store.list("") == []
    assert store.create("a/k", b"two")


def test_deleting_what_is_absent_is_fine(store: Store) -> None:
    store.delete("nothing")
    store.delete("no/such/folder/nothing")
    assert store.list("") == []


def test_a_list_is_sorted_and_holds_whole_keys_of_the_prefix_only(store: Store) -> None:
    keys = ["runs/a/plan", "runs/a/state-1", "runs/ab", "runs/b/plan", "latest.json"]
    for key in keys:
        store.create(key, b"x")
    assert store.list("") == sorted(keys)
    assert store.list("runs/") == sorted(key for key in keys if key.startswith("runs/"))
    assert store.list("runs/a") == ["runs/a/plan", "runs/a/state-1", "runs/ab"]
    assert store.list("runs/a/") == ["runs/a/plan", "runs/a/state-1"]
    assert store.list("runs/ab") == ["runs/ab"]
    assert store.list("run/") == store.list("runs/a/plan/x") == []


def test_a_new_object_is_listed_at_once(store: Store) -> None:
    for number in range(5):
        assert len(store.list("n/")) == number
        store.create(f"n/{number}", b"x")


def test_every_object_has_the_time_of_its_last_write_and_a_size(store: Store) -> None:
    for key in ("runs/a/plan", "runs/b/plan", "latest.json"):
        store.create(key, b"123")
    store.replace("runs/b/plan", b"12345", blob(store, "runs/b/plan").tag)
    found = {aged.key: aged for aged in store.ages("")}
    assert sorted(found) == store.list("")
    assert {key: aged.size for key, aged in found.items()} == {"latest.json": 3, "runs/a/plan": 3, "runs/b/plan": 5}
    for aged in found.values():
        assert abs(datetime.now(UTC) - aged.written) < timedelta(minutes=5)
    assert [aged.key for aged in store.ages("runs/a")] == ["runs/a/plan"]
    assert list(store.ages("none/")) == []


@pytest.mark.parametrize(
    "key", ["naïve/日本語.json", "a b/c+d", "50%/ü%20", "q?x=1&y#z", "emoji/🐝", ".hidden/.x", "~/$x"]
)
def test_any_name_is_a_key(store: Store, key: str) -> None:
    assert store.create(key, key.encode())
    assert blob(store, key).data == key.encode()
    assert store.list("") == [key]
    assert store.list(key.partition("/")[0]) == [key]
    store.delete(key)
    assert store.read(key) is None


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "/etc/passwd",
        "a//b",
        "a/",
        "../up",
        "a/../../up",
        "a/./b",
        "..",
        "nul\0",
        "\ud800",
        ".combee-x",
    ],
)
def test_a_key_that_leaves_the_store_or_is_no_text_is_refused_everywhere(store: Store, key: str) -> None:
    acts: list[Callable[[], object]] = [
        lambda: store.read(key),
        lambda: store.create(key, b"x"),
        lambda: store.replace(key, b"x", "tag"),
        lambda: store.delete(key),
        lambda: store.lease(key, "me").__enter__(),
    ]
    for act in acts:
        with pytest.raises(UsageError, match="store key"):
            act()


@pytest.mark.parametrize("prefix", ["/", "../", "/etc/", "a//", "a/../"])
def test_a_prefix_that_leaves_the_store_is_refused(store: Store, prefix: str) -> None:
    with pytest.raises(UsageError, match="store key"):
        store.list(prefix)
    with pytest.raises(UsageError, match="store key"):
        list(store.ages(prefix))


def test_the_same_uri_opens_the_same_content(store: Store) -> None:
    store.create("k", b"x")
    again = open_store(store.uri)
    assert blob(again, "k") == blob(store, "k")
    assert again.uri == store.uri
    assert not again.uri.endswith("/")


def test_stores_of_different_uris_share_nothing(store: Store) -> None:
    store.create("k", b"x")
    assert open_store(f"{store.uri}-other").list("") == []


def test_a_lease_keeps_the_second_holder_out_and_names_the_first(store: Store) -> None:
    with store.lease("runs/a/owner", "run blue-fox, process 12"):
        with pytest.raises(RunHeld, match="blue-fox, process 12"), store.lease("runs/a/owner", "run red-owl"):
            raise AssertionError("two holders")
        with (
            pytest.raises(RunHeld, match="blue-fox"),
            open_store(store.uri).lease("runs/a/owner", "run red-owl"),
        ):
            raise AssertionError("two holders")


def test_leases_of_different_keys_do_not_meet(store: Store) -> None:
    with store.lease("runs/a/owner", "one"), store.lease("runs/b/owner", "two"):
        assert store.list("runs/") == ["runs/a/owner", "runs/b/owner"]


def test_a_lease_that_was_left_is_free_and_leaves_nothing(store: Store) -> None:
    for holder in ("one", "two"):
        with store.lease("owner", holder):
            pass
        assert store.list("") == []


def test_a_lease_is_free_after_an_error_inside(store: Store) -> None:
    with pytest.raises(ValueError, match="inside"), store.lease("owner", "one"):
        raise ValueError("inside")
    with store.lease("owner", "two"):
        pass
