"""From files to trajectories: every run once, everything else named, nothing raised."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import TRACES, needs
from trace_samples import (
    NOON,
    ask,
    chat_jsonl,
    chat_row,
    file,
    lines,
    plain_jsonl,
    plain_row,
    say,
    tau_day,
    tau_file,
    tau_run,
)

import combee_core.traces
from combee_core.days import Window, day_window
from combee_core.errors import UsageError
from combee_core.ingest import Ingested, ingest, ingest_days
from combee_core.ports import ReadOptions
from combee_core.records import Item
from combee_core.spool import MemorySpool
from combee_core.traces import readers
from combee_core.types import Outcome, Step, TraceFile, Trajectory, Unread

LATER = NOON + timedelta(days=1)


def read(*files: TraceFile | Unread, window: Window | None = None) -> Ingested:
    return ingest(files, readers(), ReadOptions(), window)


def whole(found: Ingested) -> tuple[object, ...]:
    return tuple(found.trajectories), found.trajectories.items, found.unread, dict(found.by_format)


def ids(found: Ingested) -> list[str]:
    return [run.trace_id for run in found.trajectories]


def skipped(found: Ingested) -> list[tuple[str, str]]:
    return [(item.trace_id, item.reason) for item in found.unread]


def unknown(found: Ingested) -> tuple[str, ...]:
    """Names of files from which nothing could be read."""
    return tuple(item.where for item in found.unread if not item.trace_id)


def test_a_mixed_folder_is_read_by_content_and_counted_by_format():
    found = read(
        tau_day(6).model_copy(update={"uri": "a.txt"}),
        chat_jsonl([chat_row(id="c1"), chat_row(id="c2")], "b"),
        plain_jsonl([plain_row(1)], "c.json"),
        file(b"\x89PNG\r\n\x1a\n", ".DS_Store"),
        file("", "empty.jsonl"),
    )
    assert found.by_format == {"openai_chat": 2, "plain": 1, "tau_bench": 6}
    assert unknown(found) == (".DS_Store", "empty.jsonl")
    assert [reason for _, reason in skipped(found)] == ["unknown format", "unknown format: empty file"]
    assert ids(found) == sorted(ids(found))


def test_no_file_gives_nothing():
    assert whole(read()) == ((), (), (), {})


def test_a_field_map_and_the_withholding_of_truth_reach_the_readers():
    rows = plain_jsonl([{"q": "x", "a": "y"}])
    mapped = ReadOptions(ground_truth=False, fields={"input": "q", "output": "a"})
    found = ingest([rows, tau_day(2)], readers(), mapped)
    assert found.by_format == {"plain": 1, "tau_bench": 2}
    assert {run.outcome.feedback for run in found.trajectories} == {"", "reward 0", "reward 1"}


def test_a_run_met_twice_counts_once_and_the_other_is_skipped_under_an_id_of_its_own():
    found = read(tau_day(2), tau_day(2).model_copy(update={"uri": "copy"}), tau_day(1).model_copy(update={"uri": "x"}))
    first, second = ids(found)
    assert sorted(skipped(found)) == [
        (f"{first}#2", f"duplicate of {first}"),
        (f"{first}#3", f"duplicate of {first}"),
        (f"{second}#2", f"duplicate of {second}"),
    ]


def test_of_two_copies_the_earlier_one_stays():
    early = tau_file([tau_run([say("a")])], "z", NOON)
    late = tau_file([tau_run([say("a")])], "a", LATER)
    for files in ((early, late), (late, early)):
        assert [run.source for run in read(*files).trajectories] == ["z#0"]


def test_two_runs_of_one_id_are_both_kept_under_different_ids_whatever_the_order():
    files = [plain_jsonl([plain_row(1, output=answer)], uri) for uri, answer in (("a", "2"), ("b", "3"), ("c", "4"))]
    found = read(*files)
    assert len(set(ids(found))) == 3
    assert ids(found)[0] == "q1"
    assert all(name.startswith("q1-") and len(name) == 11 for name in ids(found)[1:])
    again = read(*(f.model_copy(update={"uri": f"other/{f.uri}", "modified": LATER}) for f in reversed(files)))
    assert [(run.trace_id, run.steps) for run in again.trajectories] == [
        (run.trace_id, run.steps) for run in found.trajectories
    ]


def test_an_id_made_to_collide_with_a_made_id_stays_apart():
    pair = [plain_row(1), plain_row(1, output="3")]
    made = ids(read(plain_jsonl(pair)))[1]
    found = read(plain_jsonl([*pair, plain_row(9, id=made)]))
    assert len(set(ids(found))) == 3
    assert made in ids(found)


def test_a_run_without_any_agent_step_is_skipped_with_its_id():
    found = read(
        tau_file([tau_run([say("hi")]), tau_run(task_id=8)]),
        chat_jsonl([{"id": "c", "messages": [ask("?")]}]),
    )
    assert len(found.trajectories) == 1
    assert sorted(reason for _, reason in skipped(found)) == ["agent never started"] * 2
    assert all(trace_id for trace_id, _ in skipped(found))
    assert unknown(found) == ()


def test_files_that_could_not_be_opened_are_passed_on():
    unread = Unread(where="x.gz", reason="damaged gzip")
    found = read(unread, tau_day(1))
    assert found.unread == (unread,)
    assert unknown(found) == ("x.gz",)
    assert read(unread, window=day_window(date(2026, 1, 1), "UTC")).unread == (unread,)


def test_equal_bad_lines_are_each_counted_under_their_own_id():
    found = read(file(lines([plain_row(1)]) + "{cut\n{cut\n"))
    names = [item.trace_id for item in found.unread]
    assert names[1] == f"{names[0]}#2"


def test_the_order_of_files_changes_nothing():
    files = [
        tau_day(4),
        chat_jsonl([chat_row(), chat_row()]),
        plain_jsonl([plain_row(1), 5, plain_row(1)]),
        file("x"),
    ]
    expected = whole(read(*files))
    for seed in range(5):
        shuffled = random.Random(seed).sample(files, len(files))
        assert whole(read(*shuffled)) == expected


def test_a_window_keeps_the_runs_of_its_day_by_logged_time_else_by_file():
    window = day_window(NOON.date(), "UTC")
    found = read(
        plain_jsonl([plain_row(1, time="2026-03-02T23:59:59Z"), plain_row(2, time="2026-03-03T00:00:00Z")], "a", LATER),
        plain_jsonl([plain_row(3), plain_row(4, output=None)], "b", NOON),
        plain_jsonl([plain_row(5), plain_row(6, output=None)], "c", LATER),
        file("junk", "d", LATER),
        window=window,
    )
    assert ids(found) == ["q1", "q3"]
    assert skipped(found) == [("q4", "agent never started")]


def test_a_naive_time_lies_in_the_time_zone_of_the_window():
    rows = plain_jsonl([plain_row(1, time="2026-03-02T23:30:00")])
    assert ids(read(rows, window=day_window(date(2026, 3, 2), "America/New_York"))) == ["q1"]
    assert ids(read(rows, window=day_window(date(2026, 3, 3), "America/New_York"))) == []


def test_a_copy_of_yesterdays_run_is_a_duplicate_today_and_not_learned_again():
    old, new = tau_file([tau_run([say("a")])], "old", NOON), tau_file([tau_run([say("a")])], "new", LATER)
    found = read(old, new, window=day_window(LATER.date(), "UTC"))
    assert ids(found) == []
    assert [reason.split()[0] for _, reason in skipped(found)] == ["duplicate"]


def test_a_copy_that_came_after_the_day_is_nobodys_original():
    new, later = (tau_file([tau_run([say("a")])], uri, at) for uri, at in (("new", NOON), ("later", LATER)))
    window = day_window(NOON.date(), "UTC")
    for files in ((new, later), (later, new)):
        found = read(*files, window=window)
        assert [run.source for run in found.trajectories] == ["new#0"]
        assert found.unread == ()


def test_only_what_is_of_the_day_goes_into_the_spool():
    days = (NOON - timedelta(days=1), NOON, LATER)
    files = [tau_file([tau_run([say(f"{at}")])], f"f{at:%d}", at) for at in days]
    spool = MemorySpool[Trajectory]()
    found = ingest(files, readers(), ReadOptions(), day_window(NOON.date(), "UTC"), spool)
    assert list(spool) == list(found.trajectories)
    assert len(spool) == 1


def test_a_run_that_got_another_id_has_the_hash_that_goes_with_it():
    found = read(plain_jsonl([plain_row(1), plain_row(1, output="3")]))
    assert found.trajectories.items == tuple(Item(id=run.trace_id, digest=run.digest) for run in found.trajectories)
    assert found.trajectories.pick(found.trajectories.items) == tuple(found.trajectories)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=9), st.booleans())
def test_the_earliest_of_equal_runs_decides_whatever_the_order(rows, with_window):
    window = day_window(NOON.date(), "UTC") if with_window else None
    files = [
        plain_jsonl([plain_row(number)], f"f{at}", NOON + timedelta(days=day - 1, hours=hour))
        for at, (number, day, hour) in enumerate(rows)
    ]
    found = read(*files, window=window)
    originals = {
        number: min((day, hour, at) for at, (n, day, hour) in enumerate(rows) if n == number) for number, *_ in rows
    }
    kept = {number: at for number, (day, _, at) in originals.items() if day == 1 or not with_window}
    assert {run.trace_id: run.source for run in found.trajectories} == {
        f"q{number}": f"f{at}:1" for number, at in kept.items()
    }
    counted = sum(day == 1 or not with_window for _, day, _ in rows)
    assert len(found.trajectories) + len(found.unread) == counted


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from(["1", "2", None])), max_size=12))
def test_days_that_are_read_together_are_what_each_is_by_itself(rows):
    files = [
        plain_jsonl([plain_row(number, output=answer)], f"f{at}", NOON + timedelta(days=day - 1, minutes=at % 3))
        for at, (number, day, answer) in enumerate(rows)
    ]
    files.append(Unread(where="x.gz", reason="damaged gzip"))
    windows = [day_window(NOON.date() + timedelta(days=n), "UTC") for n in range(3)]
    together = ingest_days(files, readers(), ReadOptions(), windows, MemorySpool[Trajectory]())
    assert [whole(found) for found in together] == [whole(read(*files, window=window)) for window in windows]


def test_of_several_days_too_only_what_is_of_them_goes_into_the_spool():
    files = [tau_file([tau_run([say(f"{n}")])], f"f{n}", NOON + timedelta(days=n)) for n in range(-1, 4)]
    windows, spool = [day_window(NOON.date() + timedelta(days=n), "UTC") for n in range(2)], MemorySpool[Trajectory]()
    found = ingest_days(files, readers(), ReadOptions(), windows, spool)
    assert [len(one.trajectories) for one in found] == [1, 1]
    assert len(spool) == 2


class Faulty:
    """A format whose reader yields one run and then fails."""

    name = "faulty"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def recognises(self, file: TraceFile) -> bool:
        return file.data == b"faulty"

    def read(self, file: TraceFile, options: ReadOptions) -> Iterator[Trajectory | Unread]:
        yield Trajectory(trace_id="f1", task="t", steps=(Step(role="assistant", text="a"),), outcome=Outcome())
        raise self.error


def test_a_fault_in_one_format_costs_its_file_and_not_the_night():
    found = ingest([file("faulty", "f"), tau_day(1)], (Faulty(KeyError("x")), *readers()), ReadOptions())
    assert len(found.trajectories) == 2
    assert found.unread[0].reason == "the reader faulty failed: KeyError: 'x'"


def test_wrong_use_is_not_swallowed():
    with pytest.raises(UsageError, match="mend"):
        ingest([file("faulty")], (Faulty(UsageError("mend it")),), ReadOptions())


NEW_FORMAT = """
from combee_core.types import Step, Trajectory

class Shout:
    name = "shout"
    fallback = False
    def recognises(self, file):
        return file.data.startswith(b"SHOUT ")
    def read(self, file, options):
        steps = (Step(role="assistant", text=file.data.decode()[6:]),)
        yield Trajectory(trace_id="s1", task="shout", steps=steps, source=file.uri)

READER = Shout()
"""


@pytest.fixture
def folder_of_formats(tmp_path: Path) -> Iterator[Path]:
    """A folder whose modules belong to the package of formats while a test runs."""
    combee_core.traces.__path__.append(str(tmp_path))
    yield tmp_path
    combee_core.traces.__path__.remove(str(tmp_path))


def test_a_new_format_is_one_new_file(folder_of_formats: Path):
    (folder_of_formats / "shout_format.py").write_text(NEW_FORMAT)
    (folder_of_formats / "shout_helper.py").write_text("X = 1")
    found = read(file("SHOUT hello"), tau_day(1))
    assert found.by_format == {"shout": 1, "tau_bench": 1}


def test_formats_are_sorted_by_name_with_the_fallback_last():
    assert [reader.name for reader in readers()] == ["openai_chat", "tau_bench", "plain"]


def every_run(found: Ingested) -> Iterable[str]:
    return [*ids(found), *(item.trace_id for item in found.unread if item.trace_id)]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["1", "2", None]), st.booleans()), max_size=12))
def test_every_line_is_accounted_for_exactly_once(rows):
    texts = ['{"cut' if cut else plain_row(number, output=answer) for number, answer, cut in rows]
    found = read(file(lines([plain_row(99), *texts])))
    names = list(every_run(found))
    assert len(names) == len(texts) + 1
    assert len(set(names)) == len(names)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_raise_and_each_unreadable_file_is_named(blobs):
    files = [file(data, f"f{n}") for n, data in enumerate(blobs)]
    found = read(*files)
    assert {item.where.split(":")[0].split("#")[0] for item in found.unread} | {
        run.source.split(":")[0] for run in found.trajectories
    } == {f.uri for f in files}


@needs(TRACES)
def test_all_kinds_of_real_and_broken_files_are_read_or_named():
    paths = [path for path in sorted(TRACES.rglob("*")) if path.is_file()]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    files = [file(path.read_bytes(), path.relative_to(TRACES).as_posix(), moment) for path in paths]
    found = read(*files)
    assert found.by_format == {"openai_chat": 2, "tau_bench": 100}
    assert Counter(item.trace_id != "" for item in found.unread)[False] == len(paths) - 2
    for run in found.trajectories:
        run.model_dump_json()
