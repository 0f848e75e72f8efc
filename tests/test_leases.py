"""Heartbeat leases: who is alive, who is dead, who may take over."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.lease import Hold, heartbeat_lease
from combee_core.adapters.memory_store import MemoryStore
from combee_core.adapters.processes import Process, is_alive, is_gone, this_process
from combee_core.adapters.stores import open_store
from combee_core.errors import RunHeld, StoreError, StoreUnavailable
from combee_core.ports import Blob, Store

ROOT = Path(__file__).parents[1]
NOW = 1_000_000.0
KEY = "runs/a/owner"


@pytest.fixture
def shelf() -> Store:
    return MemoryStore(uuid.uuid4().hex)


@pytest.fixture
def ended() -> Iterator[Process]:
    """A process of this machine that was killed, and whose parent has not noticed yet."""
    code = "from combee_core.adapters.processes import this_process as p\nprint(*p(), sep='\\n', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        host, pid, started = (child.stdout.readline().strip() for _ in range(3))
        process = Process(host, int(pid), started)
        assert not is_gone(process)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        yield process


def put(store: Store, owner: Process, beat: float = NOW, key: str = KEY) -> None:
    """The lease as `owner` left it."""
    hold = Hold(**owner._asdict(), beat=beat, holder="run of old", token="t")
    store.create(key, hold.at(beat))


def held_by_whom(store: Store, key: str = KEY) -> Hold:
    blob = store.read(key)
    assert blob is not None
    return Hold.model_validate_json(blob.data)


def take(store: Store, now: float = NOW) -> str:
    """The holder's text while we have the lease."""
    with heartbeat_lease(store, KEY, "heir", clock=lambda: now):
        return held_by_whom(store).holder


ELSEWHERE = Process("another-host", 1, "boot:space:7")


def test_a_fresh_beat_from_another_machine_is_respected(shelf: Store) -> None:
    put(shelf, ELSEWHERE)
    with pytest.raises(RunHeld, match="held by run of old ") as refused:
        take(shelf, NOW + 1)
    assert refused.value.item == KEY
    assert held_by_whom(shelf).token == "t"


@given(silence=st.floats(min_value=-1000, max_value=1000))
def test_another_machine_is_dead_after_more_than_three_silent_intervals(silence: float) -> None:
    shelf = MemoryStore(uuid.uuid4().hex)
    put(shelf, ELSEWHERE, NOW - silence)
    if silence > 90:
        assert take(shelf) == "heir"
        assert shelf.list("") == []
    else:
        with pytest.raises(RunHeld):
            take(shelf)


def test_a_killed_process_of_this_machine_is_taken_over_at_once(shelf: Store, ended: Process) -> None:
    put(shelf, ended)
    assert take(shelf, NOW) == "heir"


@pytest.mark.parametrize("jump", [0, 86_400, -86_400])
def test_a_living_process_of_this_machine_is_respected_wherever_the_clock_has_jumped(shelf: Store, jump: int) -> None:
    put(shelf, this_process())
    assert is_alive(this_process())
    with pytest.raises(RunHeld):
        take(shelf, NOW + jump)
    assert held_by_whom(shelf).token == "t"


def test_a_process_that_is_not_seen_from_here_is_called_neither_alive_nor_gone() -> None:
    for process in (ELSEWHERE, this_process()._replace(started="other-boot:pid:[1]:7"), Process("h", 1, "")):
        assert not is_alive(process)
        assert not is_gone(process)


def test_a_killed_process_is_not_alive(ended: Process) -> None:
    assert not is_alive(ended)


def test_a_number_used_again_by_another_process_is_not_taken_for_the_owner(shelf: Store) -> None:
    me = this_process()
    before = me._replace(started=f"{me.started.rpartition(':')[0]}:1")
    assert is_gone(before)
    put(shelf, before)
    assert take(shelf, NOW) == "heir"


def test_a_process_of_another_container_or_boot_is_judged_by_its_beat_alone(shelf: Store, ended: Process) -> None:
    other = ended._replace(started="other-boot:pid:[1]:7")
    assert not is_gone(other)
    put(shelf, other)
    with pytest.raises(RunHeld):
        take(shelf, NOW + 90)
    assert take(shelf, NOW + 91) == "heir"


def test_a_process_of_another_host_is_never_called_gone(ended: Process) -> None:
    assert is_gone(ended)
    assert not is_gone(ended._replace(host=f"not-{socket.gethostname()}"))


def test_of_many_heirs_one_takes_over(shelf: Store, ended: Process) -> None:
    put(shelf, ended)
    gate, losers = threading.Barrier(8), threading.Semaphore(0)
    winners: list[int] = []

    def want(number: int) -> None:
        gate.wait(60)
        try:
            with heartbeat_lease(shelf, KEY, f"heir {number}", clock=lambda: NOW):
                winners.append(number)
                for _ in range(7):
                    assert losers.acquire(timeout=60)
        except RunHeld:
            losers.release()

    threads = [threading.Thread(target=want, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(winners) == 1


class Overtaken(MemoryStore):
    """A memory store in which, right after the first look at a dead hold, somebody else takes it over."""

    looked = False

    def read(self, key: str) -> Blob | None:
        found = super().read(key)
        if found and not self.looked:
            self.looked = True
            rival = Hold(**ELSEWHERE._asdict(), beat=NOW, holder="a faster heir", token="f")
            super().replace(key, rival.at(NOW), found.tag)
        return found


def test_an_heir_who_comes_a_moment_late_respects_the_faster_one(ended: Process) -> None:
    shelf = Overtaken(uuid.uuid4().hex)
    put(shelf, ended)
    with pytest.raises(RunHeld, match="a faster heir"):
        take(shelf)
    assert held_by_whom(shelf).token == "f"


def test_something_else_in_the_place_of_a_lease_is_named_and_kept(shelf: Store) -> None:
    shelf.create(KEY, b"somebody's notes")
    with pytest.raises(StoreError, match=f"{KEY} is not a lease"):
        take(shelf)
    assert shelf.list("") == [KEY]


class Ticking:
    """A clock that goes on by one second at each look, and tells when it was looked at often enough."""

    def __init__(self, looks: int) -> None:
        self.now, self._left, self.enough = NOW, looks, threading.Event()

    def __call__(self) -> float:
        self.now += 1
        self._left -= 1
        if self._left <= 0:
            self.enough.set()
        return self.now


def test_the_holder_s_heart_beats_while_it_works(shelf: Store) -> None:
    clock = Ticking(looks=10)
    with heartbeat_lease(shelf, KEY, "me", interval=0.001, clock=clock):
        first = held_by_whom(shelf)
        assert clock.enough.wait(60)
        later = held_by_whom(shelf)
    assert later.beat > first.beat + 3
    assert (later.token, later.holder) == (first.token, "me")
    assert shelf.list("") == []


def test_the_heart_stops_with_the_lease(shelf: Store) -> None:
    with heartbeat_lease(shelf, KEY, "me", interval=0.001):
        pass
    assert not [thread for thread in threading.enumerate() if thread.name == f"lease of {KEY}"]


def test_only_our_own_hold_is_removed(shelf: Store, caplog: pytest.LogCaptureFixture) -> None:
    with heartbeat_lease(shelf, KEY, "me"):
        shelf.delete(KEY)
        put(shelf, ELSEWHERE)
    assert held_by_whom(shelf).host == "another-host"


def test_a_hold_that_was_taken_over_is_left_alone_and_the_loss_is_logged(
    shelf: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), heartbeat_lease(shelf, KEY, "me", interval=0.05):
        shelf.delete(KEY)
        put(shelf, ELSEWHERE)
        for thread in threading.enumerate():
            if thread.name == f"lease of {KEY}":
                thread.join(60)
                assert not thread.is_alive()
    assert held_by_whom(shelf).token == "t"
    assert "taken over by another process" in caplog.text


class Flaky(MemoryStore):
    """A memory store that does not answer while `silent` is set, and says when it was asked."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.silent, self.asked = False, threading.Event()

    def read(self, key: str) -> Blob | None:
        if self.silent:
            self.asked.set()
            raise StoreUnavailable(f"{key}: no answer")
        return super().read(key)


def test_a_heart_outlives_a_store_that_falls_silent_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    shelf, clock = Flaky(uuid.uuid4().hex), Ticking(looks=10**9)
    with heartbeat_lease(shelf, KEY, "me", interval=0.001, clock=clock):
        shelf.silent = True
        assert shelf.asked.wait(60)
        shelf.silent = False
        before = held_by_whom(shelf).beat
        pause = threading.Event()
        assert any(held_by_whom(shelf).beat > before for _ in range(60_000) if not pause.wait(0.001))
    assert "will try again" in caplog.text
    assert shelf.list("") == []


def test_a_lease_that_cannot_be_removed_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Flaky(uuid.uuid4().hex)
    with heartbeat_lease(shelf, KEY, "me"):
        shelf.silent = True
    assert "stays behind" in caplog.text


def test_a_killed_process_s_lease_on_s3_is_taken_over(s3_uri: str) -> None:
    code = """
import sys
from combee_core.adapters.stores import open_store
with open_store(sys.argv[1]).lease("runs/a/owner", "run doomed"):
    print("held", flush=True)
    input()
"""
    store = open_store(s3_uri)
    command = [sys.executable, "-c", code, s3_uri]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "held\n"
        with pytest.raises(RunHeld, match="run doomed"), store.lease(KEY, "heir"):
            raise AssertionError("two holders")
        doomed.kill()
        doomed.wait()
    with store.lease(KEY, "heir"):
        assert held_by_whom(store).holder == "heir"
    assert store.list("") == []
