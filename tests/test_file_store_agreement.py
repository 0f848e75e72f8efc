"""Whatever is done to it, a folder agrees with a dictionary and keeps every key inside."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from combee_core.adapters.file_store import FileStore
from combee_core.adapters.memory_store import MemoryStore
from combee_core.errors import UsageError

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


FolderAndMemoryAgree.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestFolderAndMemoryAgree = FolderAndMemoryAgree.TestCase


@given(key=st.text(min_size=1, max_size=40))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
