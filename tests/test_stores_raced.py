"""The contract of every store when many write at once."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from racing import WRITERS, at_once, blob

from combee_core.errors import RunHeld
from combee_core.ports import Store


def test_of_many_creators_with_different_bytes_one_succeeds(store: Store) -> None:
    won = at_once(lambda number: store.create("race", f"writer {number}".encode()))
    assert won.count(True) == 1
    assert blob(store, "race").data == f"writer {won.index(True)}".encode()


def test_many_creators_with_equal_bytes_all_succeed(store: Store) -> None:
    assert all(at_once(lambda number: store.create("race", b"the same answer")))


def count_up(store: Store, writer: int, rounds: int) -> None:
    """Add 1 to the counter, `rounds` times. Bodies name their writer, or equal ones would pass for own."""
    for number in range(rounds):
        while True:
            held = blob(store, "counter")
            value = int(held.data.split()[0]) + 1
            if store.replace("counter", f"{value} {writer} {number}".encode(), held.tag):
                break


def test_a_counter_loses_no_update(store: Store) -> None:
    writers, rounds = (3, 4) if store.uri.startswith("s3:") else (WRITERS, 15)
    store.create("counter", b"0")
    at_once(lambda writer: count_up(store, writer, rounds), writers)
    assert int(blob(store, "counter").data.split()[0]) == writers * rounds


def test_a_reader_never_sees_half_an_object(store: Store) -> None:
    bodies = {letter * 300_000 for letter in (b"a", b"b")}
    store.create("k", b"a" * 300_000)
    done = threading.Event()

    def write() -> None:
        for letter in (b"b", b"a") * 8:
            store.replace("k", letter * 300_000, blob(store, "k").tag)
        done.set()

    def read() -> set[bytes]:
        seen = {blob(store, "k").data}
        while not done.is_set():
            seen.add(blob(store, "k").data)
        return seen

    seen = at_once(lambda number: read() if number else write(), 2)[1]
    assert seen is not None
    assert seen <= bodies


def test_of_many_who_want_a_lease_one_has_it(store: Store) -> None:
    losers = threading.Semaphore(0)

    def want(number: int) -> bool:
        try:
            with store.lease("owner", f"holder {number}"):
                for _ in range(WRITERS - 1):
                    assert losers.acquire(timeout=60)
                return True
        except RunHeld:
            losers.release()
            return False

    assert at_once(want).count(True) == 1


def test_a_lease_that_goes_from_hand_to_hand_is_never_in_two(store: Store) -> None:
    writers, rounds = (3, 5) if store.uri.startswith("s3:") else (WRITERS, 60)
    inside: list[int] = []
    crowded: list[list[int]] = []

    def come_and_go(number: int) -> None:
        for _ in range(rounds):
            with suppress(RunHeld), store.lease("owner", f"holder {number}"):
                inside.append(number)
                time.sleep(0)
                crowded.extend([list(inside)] if len(inside) > 1 else [])
                inside.remove(number)

    at_once(come_and_go, writers)
    assert crowded == []
    assert store.list("") == []
