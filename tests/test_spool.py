"""What lies outside memory: equal when it comes back, found by id, gone with its owner."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from builders import trajectory
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from combee_core.adapters.spool import FileSpool
from combee_core.base import whole
from combee_core.errors import StoreError, UsageError
from combee_core.records import Item
from combee_core.spool import Catalogue, Entry, MemorySpool
from combee_core.types import Outcome, Sample, Step, ToolCall, Trajectory


def catalogue(*ids: str) -> Catalogue[Sample]:
    spool = MemorySpool[Sample]()
    samples = [Sample(id=name, context=f"the question of {name}") for name in ids]
    return Catalogue(spool, [Entry(s.id, s.digest, spool.put(s)) for s in samples])


def names(samples: Sequence[Sample]) -> list[str]:
    return [sample.id for sample in samples]


def item(name: str) -> Item:
    return catalogue(name).items[0]


# the catalogue


def test_a_catalogue_is_sorted_by_id_and_read_like_any_sequence() -> None:
    made = catalogue("c", "a", "b")
    assert names(made) == ["a", "b", "c"]
    assert (len(made), made[0].id, made[-1].id) == (3, "a", "c")
    assert made[1] in made
    with pytest.raises(IndexError):
        made[3]


def test_its_items_are_ids_and_content_hashes() -> None:
    made = catalogue("b", "a")
    assert made.items == tuple(Item(id=sample.id, digest=sample.digest) for sample in made)


def test_a_part_of_it_is_a_catalogue_and_knows_nothing_of_the_rest() -> None:
    part = catalogue("d", "a", "c", "b")[:2]
    assert names(part) == ["a", "b"]
    assert names(part.pick([item("b")])) == ["b"]
    with pytest.raises(UsageError, match="c is gone"):
        part.pick([item("c")])
    assert names(catalogue("a", "b")[:None]) == ["a", "b"]


def test_what_is_picked_comes_in_the_order_asked_for() -> None:
    made = catalogue("a", "b", "c")
    assert names(made.pick([item("c"), item("a"), item("c")])) == ["c", "a", "c"]
    assert made.pick([]) == ()


@pytest.mark.parametrize("name", ["0", "ab", "z"])
def test_an_item_that_is_gone_is_named_with_the_way_out(name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} is gone from the source since the run was planned.*--again"):
        catalogue("a", "b").pick([item("a"), item(name)])


def test_an_item_with_another_content_is_named_too() -> None:
    with pytest.raises(UsageError, match="a has changed in the source since the run was planned; put it back"):
        catalogue("a").pick([Item(id="a", digest="another")])


def test_nothing_can_be_picked_from_nothing() -> None:
    with pytest.raises(UsageError, match="is gone"):
        catalogue().pick([item("a")])


class Counting(MemorySpool[Sample]):
    """A spool that counts what is read from it."""

    reads = 0

    def get(self, number: int) -> Sample:
        self.reads += 1
        return super().get(number)


def test_nothing_is_read_before_it_is_asked_for() -> None:
    spool = Counting()
    samples = [Sample(id=f"s{n}", context="?") for n in range(9)]
    made = Catalogue(spool, [Entry(s.id, s.digest, spool.put(s)) for s in samples])
    wanted = made[2:5].items
    assert spool.reads == 0
    assert len(made.pick(wanted)) == spool.reads == 3


@given(st.sets(st.text(max_size=3), max_size=8), st.sets(st.text(max_size=3), max_size=8))
def test_exactly_what_is_there_is_found(there: set[str], asked: set[str]) -> None:
    made = catalogue(*there)
    for name in there | asked:
        if name in there:
            assert names(made.pick([item(name)])) == [name]
        else:
            with pytest.raises(UsageError):
                made.pick([item(name)])


# the file


moments = st.none() | st.datetimes() | st.datetimes(timezones=st.just(timezone(timedelta(hours=5, minutes=30))))
steps = st.builds(
    Step,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=texts,
    calls=st.lists(st.builds(ToolCall, name=texts, arguments=texts), max_size=2).map(tuple),
)
runs = st.builds(
    Trajectory,
    trace_id=texts,
    task=texts,
    steps=st.lists(steps, max_size=3).map(tuple),
    outcome=st.builds(Outcome, score=st.none() | st.floats(allow_nan=False, allow_infinity=False), feedback=texts),
    when=moments,
    metadata=st.dictionaries(texts.map(whole), texts, max_size=2),
)


@given(st.lists(runs, max_size=4))
def test_whatever_was_put_in_comes_out_in_whole_characters(made: list[Trajectory]) -> None:
    spool = FileSpool(Trajectory)
    numbers = [spool.put(run) for run in made]
    found = [spool.get(number) for number in reversed(numbers)][::-1]
    assert [run.model_dump() for run in found] == [_whole(run.model_dump()) for run in made]


def _whole(value: object) -> object:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_whole, value))
    return whole(value) if isinstance(value, str) else value


def test_reading_and_writing_may_alternate() -> None:
    spool = FileSpool(Sample)
    for number in range(200):
        assert spool.put(Sample(id=str(number), context="x" * number)) == number
        assert spool.get(number // 2).id == str(number // 2)


def test_many_threads_may_read() -> None:
    spool = FileSpool(Trajectory)
    numbers = [spool.put(trajectory(f"t{n}", "word " * n)) for n in range(300)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(spool.get, numbers * 3))
    assert [run.trace_id for run in found] == [f"t{n}" for n in range(300)] * 3


def test_a_time_with_its_zone_comes_back() -> None:
    spool = FileSpool(Trajectory)
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert spool.get(spool.put(trajectory(when=moment))).when == moment


def test_the_file_has_no_name_and_goes_with_its_owner(tmp_path: Path) -> None:
    spool = FileSpool(Sample, str(tmp_path))
    spool.put(Sample(id="a", context="?"))
    assert list(tmp_path.iterdir()) == []
    gc.collect()
    opened = open_files()
    seen = weakref.ref(spool)
    del spool
    gc.collect()
    assert seen() is None
    assert open_files() == opened - 1


def test_it_can_be_closed_twice() -> None:
    spool, opened = FileSpool(Sample), open_files()
    spool.close()
    spool.close()
    assert open_files() == opened - 1


def open_files() -> int:
    """Number of files that this process has open, and one for the look itself."""
    return len(os.listdir("/dev/fd"))


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere: No such file or directory.*TMPDIR"):
        FileSpool(Sample, str(tmp_path / "nowhere"))


def test_a_disk_that_is_full_is_named_with_the_way_out() -> None:
    script = """
import resource
from combee_core.adapters.spool import FileSpool
from combee_core.errors import StoreError
from combee_core.types import Sample

resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
spool = FileSpool(Sample)
try:
    for number in range(100):
        spool.put(Sample(id=str(number), context="x" * 1000))
except StoreError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "File too large" in done.stdout
    assert "free some space" in done.stdout
    assert done.stderr == ""
