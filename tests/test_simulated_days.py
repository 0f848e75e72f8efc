"""Days of simulated traces, written by the command for whoever wants to try things out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from combee_core.adapters.inputs import load_input
from combee_core.cli import main
from combee_core.config import Source


def written(*args: object) -> int:
    return main(["simulate", "traces", *map(str, args)])


def test_each_day_is_a_file_of_its_own_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert written(tmp_path, "--first", "2026-11-28", "--days", 2, "--per-day", 5) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2026-11-28.jsonl", "2026-11-29.jsonl"]
    assert capsys.readouterr().out.count("5 traces") == 2
    for day in (date(2026, 11, 28), date(2026, 11, 29)):
        assert len(load_input(Source(uris=(str(tmp_path),), day=day)).items) == 5


def test_ids_are_never_used_twice_and_a_second_writing_changes_nothing(tmp_path: Path) -> None:
    written(tmp_path, "--first", "2026-11-01", "--days", 3, "--per-day", 4)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    ids = [json.loads(line)["id"] for data in before.values() for line in data.splitlines()]
    assert len(set(ids)) == 12
    written(tmp_path, "--first", "2026-11-01", "--days", 3, "--per-day", 4)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_without_a_first_day_yesterday_is_the_last_one(tmp_path: Path) -> None:
    written(tmp_path, "--days", 2, "--per-day", 1)
    assert (tmp_path / f"{datetime.now(UTC).date() - timedelta(days=1)}.jsonl").exists()
    assert len(list(tmp_path.iterdir())) == 2
