"""Finding files: paths, folders, buckets, packed files and what must not be followed."""

from __future__ import annotations

import gzip
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from seaweed import Seaweed

from combee_core.adapters.sources import find_files
from combee_core.errors import StoreDenied, StoreError, StoreUnavailable, UsageError
from combee_core.types import TraceFile, Unread


def found(uri: str | Path, **options: int) -> dict[str, TraceFile | Unread]:
    items = list(find_files(str(uri), **options))
    return {item.uri if isinstance(item, TraceFile) else item.where: item for item in items}


def names(uri: str | Path) -> list[str]:
    return [Path(name).name for name in found(uri)]


def reason(item: TraceFile | Unread) -> str:
    assert isinstance(item, Unread), item
    return item.reason


@pytest.fixture
def day(tmp_path: Path) -> Path:
    folder = tmp_path / "day one"
    for name in ("b.json", "a/z.json", "a/deep/y", ".hidden", "c.png"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def test_a_folder_is_walked_to_its_ground_in_the_order_of_names(day):
    paths = [Path(name).relative_to(day).as_posix() for name in found(day)]
    assert paths == [".hidden", "a/deep/y", "a/z.json", "b.json", "c.png"]


def test_a_single_file_is_found_with_its_content_and_time(day):
    os.utime(day / "b.json", (0, 1_772_452_800))
    (item,) = find_files(str(day / "b.json"))
    assert isinstance(item, TraceFile)
    assert (item.data, item.modified) == (b"b.json", datetime(2026, 3, 2, 12, tzinfo=UTC))


def test_a_file_uri_names_the_same_place(day):
    assert found(day.as_uri()) == found(day)
    assert "%20" in day.as_uri()


def test_a_relative_file_uri_counts_from_here(day, monkeypatch):
    monkeypatch.chdir(day.parent)
    assert names("file://./day one") == names(day)


def test_an_empty_folder_holds_nothing(tmp_path):
    assert found(tmp_path) == {}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_missing_path_is_wrong_use_and_is_named(tmp_path, form):
    with pytest.raises(UsageError, match="nowhere"):
        list(find_files(form.format(tmp_path / "nowhere")))


@pytest.mark.parametrize("uri", ["", "file://", "s3://", "gs://bucket/x", "https://host/x", "s3:///x"])
def test_a_place_of_another_kind_is_wrong_use_and_the_forms_are_told(uri):
    with pytest.raises(UsageError, match="s3://bucket/prefix"):
        list(find_files(uri))


def test_packed_files_are_unpacked_whatever_their_name(tmp_path):
    (tmp_path / "plain-name").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    (tmp_path / "not-packed.gz").write_bytes(b"text")
    assert [item.data for item in find_files(str(tmp_path)) if isinstance(item, TraceFile)] == [
        b"text",
        b"one\ntwo\n",
    ]


@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda d: d[:4], lambda d: d[:12] + b"\xff\xff\xff" + d[15:]])
def test_a_damaged_packed_file_is_named_and_the_rest_is_read(tmp_path, damage):
    (tmp_path / "a.gz").write_bytes(damage(gzip.compress(b"some content " * 50)))
    (tmp_path / "b").write_text("b")
    first, second = found(tmp_path).values()
    assert reason(first).startswith("damaged gzip")
    assert isinstance(second, TraceFile)


def test_files_above_the_limit_are_named_packed_or_not(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10_000)))
    (tmp_path / "large").write_bytes(bytes(2_000))
    (tmp_path / "small").write_bytes(bytes(1_000))
    bomb, large, small = found(tmp_path, largest=1_000).values()
    assert reason(bomb) == "too large: more when unpacked, at most 1,000 bytes are read"
    assert reason(large) == "too large: 2,000 bytes, at most 1,000 bytes are read"
    assert isinstance(small, TraceFile)


def test_links_out_of_the_folder_are_named_and_not_followed(day, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden")
    (day / "link-file").symlink_to(secret / "key")
    (day / "link-folder").symlink_to(secret, target_is_directory=True)
    items = found(day)
    links = [item for item in items.values() if isinstance(item, Unread)]
    assert [Path(item.where).name for item in links] == ["link-file", "link-folder"]
    assert {item.reason for item in links} == {"a symbolic link out of the folder is not followed"}
    assert not [i for i in items.values() if isinstance(i, TraceFile) and i.data == b"hidden"]


def test_links_inside_the_folder_do_no_harm(day):
    (day / "again").symlink_to(day / "b.json")
    (day / "a" / "circle").symlink_to(day, target_is_directory=True)
    (day / "gone").symlink_to(day / "nothing")
    items = found(day)
    assert len(items) == 7
    assert reason(items[str(day / "gone")]).startswith("cannot be read")


def test_a_folder_that_is_itself_a_link_is_walked(day, tmp_path):
    (tmp_path / "link").symlink_to(day, target_is_directory=True)
    assert names(tmp_path / "link") == names(day)


def test_a_pipe_is_named_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert reason(found(tmp_path)[str(tmp_path / "pipe")]) == "not a regular file"


def test_a_name_that_is_no_utf8_is_shown_with_replacements(tmp_path):
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))).write_text("x")
    assert names(tmp_path) == ["caf�"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(day):
    (day / "b.json").chmod(0)
    (day / "a").chmod(0)
    items = found(day)
    (day / "a").chmod(0o700)
    assert reason(items[str(day / "b.json")]).startswith("cannot be read")
    assert reason(items[str(day / "a")]).startswith("the folder cannot be read")


# buckets


def put(server: Seaweed, uri: str, **objects: bytes) -> None:
    server.put(uri.removeprefix(f"s3://{server.bucket}/"), objects)


def test_a_prefix_is_read_like_a_folder(s3_server, s3_uri):
    put(s3_server, s3_uri, **{"day/b": b"B", "day/a/x.gz": gzip.compress(b"A"), "day2/c": b"C", "day/": b""})
    items = found(f"{s3_uri}/day")
    assert list(items) == [f"{s3_uri}/day/a/x.gz", f"{s3_uri}/day/b"]
    assert [item.data for item in items.values() if isinstance(item, TraceFile)] == [b"A", b"B"]
    assert found(f"{s3_uri}/day/") == items
    assert all(item.modified.tzinfo is UTC for item in items.values() if isinstance(item, TraceFile))


def test_a_single_object_is_read_like_a_file(s3_server, s3_uri):
    put(s3_server, s3_uri, **{"one/b": b"B", "one/bc": b"no"})
    assert list(found(f"{s3_uri}/one/b")) == [f"{s3_uri}/one/b"]


def test_every_page_of_a_long_listing_is_read(crowded, s3_uri):
    uri, keys = crowded
    assert list(found(f"{uri}/many")) == [f"{uri}/{key}" for key in keys]


def test_an_object_above_the_limit_is_named(s3_server, s3_uri):
    put(s3_server, s3_uri, **{"big/a": bytes(2_000)})
    (item,) = found(f"{s3_uri}/big", largest=1_000).values()
    assert reason(item).startswith("too large: 2,000 bytes")


def test_what_is_not_wanted_by_its_time_is_not_fetched(s3_server, s3_uri, day):
    put(s3_server, s3_uri, **{"day/a": b"a", "day/b": b"b"})
    times = []

    def wanted(modified):
        times.append(modified)
        return len(times) == 1

    assert [item.data for item in find_files(f"{s3_uri}/day", wanted=wanted)] == [b"a"]
    assert all(datetime(2026, 1, 1, tzinfo=UTC) < one for one in times)
    assert list(find_files(str(day), wanted=lambda _: False)) == []
    assert list(find_files(f"{s3_uri}/day", wanted=lambda _: False)) == []


def test_an_empty_prefix_and_a_missing_bucket_are_told_apart_from_no_rights(s3_server, s3_uri, monkeypatch):
    with pytest.raises(UsageError, match=f"{s3_uri}/typo"):
        list(find_files(f"{s3_uri}/typo"))
    with pytest.raises(StoreError, match="no-such-bucket"):
        list(find_files("s3://no-such-bucket/day"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.stranger)
    with pytest.raises(StoreDenied, match=f"{s3_uri}/day"):
        list(find_files(f"{s3_uri}/day"))


def test_a_server_that_does_not_answer_is_unavailable(s3_uri, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StoreUnavailable, match=f"{s3_uri}/day"):
            list(find_files(f"{s3_uri}/day"))
