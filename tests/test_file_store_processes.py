"""A folder shared by processes, some of which are killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from children import child, together

from combee_core.adapters.file_store import FileStore
from combee_core.errors import RunHeld


def test_processes_that_count_together_lose_no_update(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.create("counter", b"0")
    code = """
import os, sys
from combee_core.adapters.stores import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
input()
for number in range(20):
    while True:
        held = store.read("counter")
        value = int(held.data.split()[0]) + 1
        if store.replace("counter", f"{value} {os.getpid()} {number}".encode(), held.tag):
            break
"""
    together(code, store.uri)
    counter = store.read("counter")
    assert counter is not None
    assert int(counter.data.split()[0]) == 80


def test_of_processes_that_create_the_same_keys_each_key_has_one_winner(tmp_path: Path) -> None:
    code = """
import os, sys
from combee_core.adapters.stores import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
input()
for number in range(200):
    if store.create(f"k{number}", str(os.getpid()).encode()):
        print(number)
"""
    store = FileStore(tmp_path)
    won = {pid: said.split() for pid, said in together(code, store.uri).items()}
    assert sorted(int(number) for numbers in won.values() for number in numbers) == list(range(200))
    for pid, numbers in won.items():
        for number in numbers:
            held = store.read(f"k{number}")
            assert held is not None
            assert held.data == str(pid).encode()


def test_a_temporary_file_left_by_a_kill_is_not_listed_and_hinders_nobody(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from combee_core.adapters.atomic import written
with written(Path(sys.argv[1]), b"half a"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    with child(code, str(tmp_path)) as killed:
        killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"half a"]
    store = FileStore(tmp_path)
    assert store.list("") == []
    assert store.create("k", b"whole")
    assert store.list("") == ["k"]


def test_a_write_that_fails_half_way_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
import resource, sys
from combee_core.adapters.stores import open_store
from combee_core.errors import StoreError
store = open_store(sys.argv[1])
store.create("k", b"small")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
tag, large = store.read("k").tag, b"x" * 5000
for write in (lambda: store.create("big", large), lambda: store.replace("k", large, tag)):
    try:
        write()
    except StoreError as error:
        print(error)
"""
    with child(code, f"file://{tmp_path}") as limited:
        said, _ = limited.communicate(timeout=60)
    assert said.splitlines() == [f"{tmp_path}/big: File too large", f"{tmp_path}/k: File too large"]
    store = FileStore(tmp_path)
    assert store.list("") == ["k"]
    held = store.read("k")
    assert held is not None
    assert held.data == b"small"
    assert not list(tmp_path.glob(".combee-*.tmp"))


def test_a_killed_process_frees_its_lease_at_once(tmp_path: Path) -> None:
    code = """
import sys
from combee_core.adapters.stores import open_store
with open_store(sys.argv[1]).lease("runs/a/owner", "run doomed"):
    print("held", flush=True)
    input()
"""
    store = FileStore(tmp_path)
    with child(code, store.uri) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "held\n"
        with pytest.raises(RunHeld, match="run doomed"), store.lease("runs/a/owner", "run heir"):
            raise AssertionError("two holders")
        doomed.kill()
        doomed.wait()
    assert store.list("") == ["runs/a/owner"]
    with (
        store.lease("runs/a/owner", "heir"),
        pytest.raises(RunHeld, match="held by heir "),
        store.lease("runs/a/owner", "third"),
    ):
        raise AssertionError("two holders")
