"""What a folder adds to the contract: processes, power, permissions, leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from combee_core.adapters.atomic import written
from combee_core.adapters.file_store import FileStore
from combee_core.adapters.memory_store import MemoryStore
from combee_core.adapters.stores import open_store
from combee_core.errors import RunHeld, StoreDenied, StoreError, UsageError

ROOT = Path(__file__).parents[1]
NOBODY = 65534


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A fresh Python that runs `code`, with our package on its path."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def together(code: str, uri: str, count: int = 4) -> dict[int, str]:
    """What each of some processes said that run `code` at the same time; each says "ready" and waits for a line."""
    children = [child(code, uri) for _ in range(count)]
    pipes = [(one.stdin, one.stdout) for one in children]
    for _, said in pipes:
        assert said is not None
        assert said.readline() == "ready\n"
    for told, _ in pipes:
        assert told is not None
        told.write("go\n")
        told.flush()
    spoken = {one.pid: one.communicate(timeout=120)[0] for one in children}
    assert [one.returncode for one in children] == [0] * count
    return spoken


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


def test_writing_leaves_no_temporary_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for data in (b"one", b"other", b"one"):
        store.create("k", data)
    held = store.read("k")
    assert held is not None
    store.replace("k", b"two", held.tag)
    store.replace("k", b"three", held.tag)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".combee-lock", "k"]


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


KEYS = st.sampled_from(["a", "b/c", "b/d", "e/f/g"])
DATA = st.sampled_from([b"", b"1", b"2", b"3"])


class FolderAndMemoryAgree(RuleBasedStateMachine):
    """Whatever is done, in whatever order, a folder and a dictionary give the same answers."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.stores = (FileStore(Path(self.place.name)), MemoryStore(self.place.name))
        self.tags: tuple[str | None, str | None] = (None, None)

    @rule(key=KEYS, data=DATA)
    def create(self, key: str, data: bytes) -> None:
        folder, memory = (store.create(key, data) for store in self.stores)
        assert folder == memory

    @rule(key=KEYS)
    def remember_the_tag(self, key: str) -> None:
        folder, memory = (store.read(key) for store in self.stores)
        self.tags = (folder and folder.tag, memory and memory.tag)

    @rule(key=KEYS, data=DATA)
    def replace(self, key: str, data: bytes) -> None:
        folder, memory = (store.replace(key, data, tag) for store, tag in zip(self.stores, self.tags, strict=True))
        assert folder == memory

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        for store in self.stores:
            store.delete(key)

    @invariant()
    def hold_the_same(self) -> None:
        folder, memory = ([(key, store.read(key)[0]) for key in store.list("")] for store in self.stores)  # type: ignore[index]
        assert folder == memory

    def teardown(self) -> None:
        self.place.cleanup()


FolderAndMemoryAgree.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestFolderAndMemoryAgree = FolderAndMemoryAgree.TestCase


@given(key=st.text(min_size=1, max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_key_is_refused_or_lands_inside_the_folder(tmp_path: Path, key: str) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        store = FileStore(Path(name) / "store")
        try:
            store.create(key, b"x")
        except UsageError:
            assert os.listdir(name) == []
        else:
            assert os.listdir(name) == ["store"]
            assert store.list("") == [key]
