"""What a folder adds to the contract: paths, permissions, leases, leftovers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from combee_core.adapters.atomic import written
from combee_core.adapters.file_store import FileStore
from combee_core.adapters.stores import open_store
from combee_core.errors import StoreDenied, StoreError

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def powerless() -> Iterator[None]:
    """Without root's rights, for which no permission is ever missing."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_writing_leaves_no_temporary_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for data in (b"one", b"other", b"one"):
        store.create("k", data)
    held = store.read("k")
    assert held is not None
    store.replace("k", b"two", held.tag)
    store.replace("k", b"three", held.tag)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".combee-lock", "k"]


def test_objects_get_the_modes_that_the_umask_allows(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    old = os.umask(0o027)
    try:
        store.create("k", b"one")
        held = store.read("k")
        assert held is not None
        store.replace("k", b"two", held.tag)
    finally:
        os.umask(old)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o640


def test_what_may_not_be_read_or_written_is_denied_and_never_absent(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    store = FileStore(folder / "store")
    store.create("open/k", b"x")
    store.create("closed/k", b"x")
    (folder / "store/open/k").chmod(0o000)
    (folder / "store/closed").chmod(0o000)
    request.getfixturevalue("powerless")
    acts = {
        "open/k": lambda: store.read("open/k"),
        "open/new": lambda: store.create("open/new", b"x"),
        "closed/k": lambda: store.read("closed/k"),
        "closed/none": lambda: store.read("closed/none"),
        "closed": lambda: store.list(""),
        "open/owner": lambda: store.lease("open/owner", "me").__enter__(),
    }
    for place, act in acts.items():
        with pytest.raises(StoreDenied) as denied:
            act()
        assert str(folder / "store") in str(denied.value), place
        assert "give user" in str(denied.value), place


def test_a_folder_in_the_place_of_an_object_is_named(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.create("a/b", b"x")
    with pytest.raises(StoreError, match=f"{tmp_path}/a: there is a folder"):
        store.create("a", b"x")
    with pytest.raises(StoreError, match=f"{tmp_path}/a/b/c: "):
        store.create("a/b/c", b"x")
    assert store.read("a") is None
    assert store.read("a/b/c") is None
    assert store.list("a/b/") == []
    store.delete("a")
    assert store.list("") == ["a/b"]


def test_a_name_too_long_for_the_disk_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="File name too long"):
        FileStore(tmp_path).create("x" * 300, b"x")


def test_nothing_is_written_by_opening_reading_or_listing(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    store.read("k")
    store.list("")
    store.delete("k")
    assert not (tmp_path / "store").exists()


def test_a_lease_survives_the_removal_of_its_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with store.lease("owner", "one"):
        store.delete("owner")
        with store.lease("owner", "two"):
            assert store.list("") == ["owner"]
    assert store.list("") == []


def test_leaving_a_lease_does_not_remove_the_file_of_another_holder(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    first = store.lease("owner", "one")
    first.__enter__()
    store.delete("owner")
    with store.lease("owner", "two"):
        first.__exit__(None, None, None)
        assert store.list("") == ["owner"]


def test_a_relative_folder_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("file://./store")
    store.create("k", b"x")
    monkeypatch.chdir("/")
    assert store.list("") == ["k"]
    assert store.uri == f"file://{tmp_path}/store"


def test_a_symbolic_link_to_the_folder_is_followed(tmp_path: Path) -> None:
    FileStore(tmp_path / "real").create("k", b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert FileStore(tmp_path / "link").list("") == ["k"]


def test_the_temporary_file_is_whole_before_it_is_moved(tmp_path: Path) -> None:
    with written(tmp_path, b"x" * 100_000) as temporary:
        assert temporary.stat().st_size == 100_000
    assert list(tmp_path.iterdir()) == []
