"""Versions: immutable objects and one pointer, on every kind of store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import memory

from combee_core.errors import StoreError, UsageError
from combee_core.ports import Store
from combee_core.versions import Pointer, Version, Versions


def draft(number: int, parent: int | None = None, text: str = "") -> Version:
    return Version(
        playbook="p",
        version=number,
        parent=number - 1 if parent is None else parent,
        digest=f"digest {number} {text}",
        learner="ace",
        state={"n": number, "text": text},
    )


def published(store: Store, count: int) -> Versions:
    versions = Versions(store, "p")
    for number in range(1, count + 1):
        assert versions.publish(draft(number))
    return versions


def damage(store: Store, key: str, data: bytes) -> None:
    blob = store.read(key)
    assert blob
    assert store.replace(key, data, blob.tag)


def test_there_is_nothing_before_the_first(store: Store) -> None:
    versions = Versions(store, "p")
    assert versions.latest() is None
    assert list(versions.chain()) == []
    with pytest.raises(UsageError, match="playbook p has no version 1"):
        versions.get(1)


def test_the_latest_is_what_was_published_last(store: Store) -> None:
    versions = published(store, 3)
    latest = versions.latest()
    assert latest is not None
    assert (latest.version, latest.state["n"]) == (3, 3)


def test_every_version_stays_and_is_found_by_its_number(store: Store) -> None:
    versions = published(store, 3)
    assert [v.version for v in versions.chain()] == [3, 2, 1]
    assert versions.get(2).digest == "digest 2 "


def test_a_version_that_does_not_follow_the_latest_is_not_published() -> None:
    versions = published(memory(), 2)
    for parent in (0, 1, 3):
        assert versions.publish(draft(9, parent)) is None
    assert [v.version for v in versions.chain()] == [2, 1]


def test_playbooks_of_one_store_do_not_meet() -> None:
    store = memory()
    published(store, 2)
    assert Versions(store, "other").latest() is None


def test_of_many_writers_exactly_one_follows() -> None:
    store = memory()
    gate = threading.Barrier(8)

    def write(number: int) -> Version | None:
        gate.wait(30)
        return Versions(store, "p").publish(draft(1, 0, f"writer {number}"))

    with ThreadPoolExecutor(8) as pool:
        won = [version for version in pool.map(write, range(8)) if version]
    assert len(won) == 1
    assert Versions(store, "p").latest() == won[0]


def test_a_crash_before_the_pointer_moves_leaves_readers_at_the_old_version(store: Store) -> None:
    versions = published(store, 1)
    pointer = store.read("playbooks/p/latest.json")
    assert pointer
    versions.publish(draft(2))
    moved = store.read("playbooks/p/latest.json")
    assert moved
    store.replace("playbooks/p/latest.json", pointer.data, moved.tag)
    assert [v.version for v in versions.chain()] == [1]
    again = versions.publish(draft(2))
    assert again is not None
    assert [v.version for v in versions.chain()] == [2, 1]
    assert len(store.list("playbooks/p/versions/")) == 2


def test_a_published_version_is_never_written_to() -> None:
    store = memory()
    versions = published(store, 1)
    (key,) = store.list("playbooks/p/versions/")
    before = store.read(key)
    published_again = versions.publish(draft(2))
    assert published_again
    assert store.read(key) == before
    assert published_again.previous == key


def test_a_version_with_another_content_than_its_hash_is_refused_by_name() -> None:
    store = memory()
    versions = published(store, 2)
    first, second = store.list("playbooks/p/versions/")
    damage(store, second, draft(2, text="forged").model_dump_json().encode())
    with pytest.raises(StoreError, match=rf"{second} does not have the hash"):
        versions.latest()
    assert first


def test_a_pointer_with_another_hash_than_the_version_is_refused() -> None:
    store = memory()
    versions = published(store, 1)
    blob = store.read("playbooks/p/latest.json")
    assert blob
    pointer = Pointer.model_validate_json(blob.data)
    damage(store, "playbooks/p/latest.json", pointer.model_copy(update={"sha256": "0" * 64}).model_dump_json().encode())
    with pytest.raises(StoreError, match="does not have the hash"):
        versions.latest()


def test_an_older_version_is_checked_too() -> None:
    store = memory()
    versions = published(store, 2)
    first, _ = store.list("playbooks/p/versions/")
    damage(store, first, draft(1, text="forged").model_dump_json().encode())
    assert versions.latest()
    with pytest.raises(StoreError, match=rf"{first} does not have the hash"):
        versions.get(1)


def test_a_version_that_is_gone_is_named() -> None:
    store = memory()
    versions = published(store, 2)
    store.delete(store.list("playbooks/p/versions/")[0])
    with pytest.raises(StoreError, match="is missing; restore it"):
        list(versions.chain())


@pytest.mark.parametrize("garbage", [b"", b"{}", b"\xff", b'{"version": 1}'])
def test_a_damaged_pointer_is_an_error_and_never_no_playbook_yet(garbage: bytes) -> None:
    store = memory()
    versions = published(store, 1)
    damage(store, "playbooks/p/latest.json", garbage)
    with pytest.raises(StoreError, match=r"latest\.json is no pointer to a version"):
        versions.latest()
    with pytest.raises(StoreError):
        versions.publish(draft(1))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-a", ".hidden", "a\n"])
def test_a_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no playbook name"):
        Versions(memory(), name)


@pytest.mark.parametrize("name", ["p", "desk-2026.03", "A_b", "0"])
def test_plain_names_are_fine(name: str) -> None:
    assert Versions(memory(), name).latest() is None


def test_an_attempt_is_repeated_on_the_new_latest_until_it_wins() -> None:
    versions = published(memory(), 1)
    seen: list[int] = []

    def attempt(latest: Version | None) -> Version | None:
        number = latest.version if latest else 0
        seen.append(number)
        if len(seen) < 3:
            assert versions.publish(draft(number + 1, text="another writer"))
        return versions.publish(draft(number + 1, text="ours"))

    assert versions.advance(attempt).version == 4
    assert seen == [1, 2, 3]
    assert versions.advance(lambda latest: (latest, "as it is")) == (versions.latest(), "as it is")


def test_an_attempt_that_never_wins_ends_in_an_error_that_names_the_pointer() -> None:
    versions = published(memory(), 1)
    with pytest.raises(StoreError, match=r"playbooks/p/latest.json moved 20 times in a row; run again"):
        versions.advance(lambda _: None)
