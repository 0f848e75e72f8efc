"""A run's input: read once, kept outside memory, handed out by a plan's items."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from trace_samples import chat_row, lines, plain_row, tau_day

from combee_core.adapters.inputs import Input, load_days, load_input, scorer_of
from combee_core.config import Source
from combee_core.errors import UsageError
from combee_core.records import Item
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.types import Sample, Trajectory


def source(*uris: object, **given: object) -> Source:
    return Source.model_validate({"uris": tuple(map(str, uris)), **given})


def ids(found: Input) -> list[str]:
    return [item.id for item in found.items]


@pytest.fixture
def day(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text(lines([plain_row(2), plain_row(1), plain_row(3)]))
    (tmp_path / "b.jsonl").write_text(lines([chat_row(id="c1"), chat_row(id="c1", question="And NL15?")]))
    (tmp_path / "c.json").write_bytes(tau_day(2).data)
    (tmp_path / "junk.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_traces_of_a_folder_become_items_sorted_by_id(day: Path) -> None:
    found = load_input(source(day))
    assert len(found.items) == 7
    assert ids(found) == sorted(ids(found))
    assert [item.where for item in found.unread] == [str(day / "junk.png")]


def test_each_item_stands_for_its_trajectory_and_carries_its_content_hash(day: Path) -> None:
    found = load_input(source(day))
    runs = found.pick(found.items)
    assert all(isinstance(run, Trajectory) for run in runs)
    assert [(run.trace_id, run.digest) for run in runs if isinstance(run, Trajectory)] == [
        (item.id, item.digest) for item in found.items
    ]
    assert list(found.everything) == list(runs)


def test_a_trajectory_comes_back_with_everything_it_was_read_with(tmp_path: Path) -> None:
    row = plain_row(1, time="2026-03-02T12:00:00+05:30", metadata={"host": "a1"}, feedback="Good.", policy="Be brief.")
    (tmp_path / "a").write_text(lines([row]))
    (run,) = load_input(source(tmp_path)).everything
    assert isinstance(run, Trajectory)
    assert run.when is not None
    assert run.when.isoformat() == "2026-03-02T12:00:00+05:30"
    assert (run.metadata, run.policy, run.outcome.feedback) == ({"host": "a1"}, "Be brief.", "Good.")
    assert run.source == f"{tmp_path / 'a'}:1"


def test_the_limit_keeps_the_first_by_id_and_the_others_are_not_there(day: Path) -> None:
    everything, found = load_input(source(day)), load_input(source(day, limit=2))
    assert found.items == everything.items[:2]
    assert found.unread == everything.unread
    with pytest.raises(UsageError, match="is gone from the source"):
        found.pick(everything.items[2:3])


def test_a_day_keeps_its_own_traces(tmp_path: Path) -> None:
    for on in (1, 2):
        (tmp_path / f"{on}.jsonl").write_bytes(day_jsonl(World(), 5, on, date(2026, 3, on)))
    found = load_input(source(tmp_path, day=date(2026, 3, 2)))
    assert ids(found) == [f"day2-{n:05d}" for n in range(1, 6)]


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 8), 23), (date(2026, 11, 1), 25)])
def test_a_trace_of_each_hour_lies_in_exactly_one_day_of_23_or_25_hours(tmp_path: Path, day: date, hours: int) -> None:
    start = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) - timedelta(days=2)
    rows = [plain_row(n, time=(start + timedelta(hours=n)).isoformat()) for n in range(100)]
    (tmp_path / "hourly").write_text(lines(rows))
    where = source(tmp_path, timezone="America/New_York")
    days = load_days(where, day - timedelta(days=3), day + timedelta(days=3))
    assert len(days[day].items) == hours
    assert len(days[day - timedelta(days=1)].items) == len(days[day + timedelta(days=1)].items) == 24
    met = Counter(item.id for found in days.values() for item in found.items)
    assert met == {f"q{n}": 1 for n in range(100)}
    for on, found in days.items():
        assert found.items == load_input(where.model_copy(update={"day": on})).items


EARLY, IN_1980 = 1_772_323_199, 315_532_800
"""Seconds: the last one of 2026-02-28, in UTC, and the first that a zip file can say."""


def test_of_files_last_changed_long_before_a_day_none_is_read_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """But for those whose time is no time of a change: archives stamp what they unpack with 1970 or 1980."""
    for on in (1, 2, 3):
        (tmp_path / f"{on}.jsonl").write_bytes(day_jsonl(World(), 5, on, date(2026, 3, on)))
        changed = datetime(2026, 3, on, 23, tzinfo=UTC).timestamp()
        os.utime(tmp_path / f"{on}.jsonl", (changed, changed))
    where = source(tmp_path, day=date(2026, 3, 3))
    # What cannot be read is named on the days that it may belong to, and on no later one.
    (tmp_path / "1.jsonl").write_bytes(b"\x1f\x8b damaged")
    for changed, unread, told in ((EARLY, 0, 1), (EARLY + 1, 1, 0), (0, 1, 0), (IN_1980, 1, 0)):
        os.utime(tmp_path / "1.jsonl", (changed, changed))
        caplog.clear()
        with caplog.at_level(logging.INFO):
            found = load_input(where)
        assert ids(found) == [f"day3-{n:05d}" for n in range(1, 6)]
        assert len(found.unread) == unread
        said = ["1 files were last changed before 2026-03-01 and were not read"] * told
        assert [record.message for record in caplog.records] == said


def test_of_days_read_together_each_has_its_own_limit(tmp_path: Path) -> None:
    for on in (1, 2):
        (tmp_path / f"{on}.jsonl").write_bytes(day_jsonl(World(), 5, on, date(2026, 3, on)))
    days = load_days(source(tmp_path, limit=2), date(2026, 3, 1), date(2026, 3, 3))
    assert [len(found.items) for found in days.values()] == [2, 2, 0]
    (first, _) = days[date(2026, 3, 2)].items
    assert [run.trace_id for run in days[date(2026, 3, 2)].pick([first]) if isinstance(run, Trajectory)] == [first.id]


@pytest.mark.parametrize("kind", ["samples", "backlog"])
def test_days_of_anything_but_traces_are_wrong_use(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match=f"the source's kind is {kind}"):
        load_days(source(tmp_path, kind=kind), date(2026, 3, 1), date(2026, 3, 1))


def test_truth_is_withheld_and_fields_are_mapped_where_the_source_says_so(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(lines([{"q": "1 + 1?", "a": "2"}]))
    (tmp_path / "tau").write_bytes(tau_day(1).data)
    found = load_input(source(tmp_path, ground_truth=False, fields={"input": "q", "output": "a"}))
    runs = [run for run in found.everything if isinstance(run, Trajectory)]
    assert {run.outcome.feedback for run in runs} == {"", "reward 1"}


def test_what_was_read_stays_as_it_was_whatever_becomes_of_the_files(day: Path) -> None:
    found = load_input(source(day))
    (day / "a.jsonl").unlink()
    (day / "c.json").write_text("[]")
    assert len(found.pick(found.items)) == 7
    with pytest.raises(UsageError, match="q1 is gone"):
        load_input(source(day)).pick([item for item in found.items if item.id == "q1"])


def test_a_trace_that_has_changed_is_told_from_one_that_is_gone(day: Path) -> None:
    planned = load_input(source(day)).items
    (day / "a.jsonl").write_text(lines([plain_row(1, output="3"), plain_row(2)]))
    now = load_input(source(day))
    (first,) = [item for item in planned if item.id == "q1"]
    with pytest.raises(UsageError, match="q1 has changed in the source"):
        now.pick([first])
    (second,) = [item for item in planned if item.id == "q2"]
    assert len(now.pick([second])) == 1


def test_a_missing_folder_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        load_input(source(tmp_path / "nowhere"))


def test_the_file_behind_the_input_goes_with_it(day: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    found = load_input(source(day))
    assert len(os.listdir("/dev/fd")) == before + 1
    del found
    assert len(os.listdir("/dev/fd")) == before


# samples


def rows(*samples: tuple[str, str]) -> str:
    return lines({"id": name, "context": context, "target": "1"} for name, context in samples)


def test_samples_of_several_files_are_one_catalogue(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(rows(("s2", "two?"), ("s1", "one?")))
    (tmp_path / "b").write_text(rows(("s3", "three?"), ("s1", "one?")))
    found = load_input(source(tmp_path, kind="samples"))
    assert ids(found) == ["s1", "s2", "s3"]
    assert found.pick(found.items[1:2]) == (Sample(id="s2", context="two?", target="1"),)
    assert ids(load_input(source(tmp_path, kind="samples", limit=1))) == ["s1"]


def test_samples_of_the_simulated_desk_are_made_anew() -> None:
    found = load_input(source("world:4:7", kind="samples"))
    assert tuple(found.everything) == World(7).sample(4, 7, "train")
    assert all(item.digest == sample.digest for item, sample in zip(found.items, found.everything, strict=True))


def test_a_number_of_samples_that_is_none_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="world:240"):
        load_input(source("world:many", kind="samples"))


def test_a_bad_sample_is_wrong_use_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(rows(("s1", "one?")) + json.dumps({"context": 5}) + "\n")
    with pytest.raises(UsageError, match="a:2: no context"):
        load_input(source(tmp_path / "a", kind="samples"))


def test_a_sample_that_is_gone_or_changed_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(rows(("s1", "one?")))
    found = load_input(source(tmp_path, kind="samples"))
    with pytest.raises(UsageError, match="s1 has changed"):
        found.pick([Item(id="s1", digest="of another day")])
    with pytest.raises(UsageError, match="s2 is gone"):
        found.pick([Item(id="s2", digest="?")])


def test_the_judge_of_a_source_withholds_what_the_source_withholds() -> None:
    world, (sample,) = World(), World().sample(1, 0, "train")
    told = scorer_of(source("world:1", kind="samples"))(sample, "wrong")
    silent = scorer_of(source("world:1", kind="samples", ground_truth=False))(sample, "wrong")
    assert told == world.score(sample, "wrong")
    assert (silent.score, silent.feedback) == (0.0, "reward 0")
