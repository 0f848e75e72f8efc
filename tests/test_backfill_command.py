"""`combee backfill` as a user types it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from command import Combee

from combee_core.cli import main
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World


def test_a_backfill_prints_one_object_and_a_second_one_asks_nothing(combee: Combee, tmp_path: Path) -> None:
    for on in (1, 2):
        (tmp_path / f"{on}.jsonl").write_bytes(day_jsonl(World(0), 4, on, date(2026, 3, on)))
    command = ("backfill", "2026-03-01..2026-03-02", "--traces", tmp_path, "--store", f"file://{tmp_path}/store")
    first = combee(*command, "--json")
    assert first.code == 0, first.err
    made = first.json
    assert [(line["day"], line["happened"], line["traces"]) for line in made["days"]] == [
        ("2026-03-01", "learned", 4),
        ("2026-03-02", "learned", 4),
    ]
    assert made["accounting"]["in"] == 8
    assert "2026-03-01: learned: 4 traces, version 1" in first.err, "a line a day as it ends"

    again = combee(*command)
    assert again.code == 0, again.err
    assert "model calls: 0 rollout, 0 reflect, 0 curate, 0 merge" in again.out
    assert again.out.count("already learned") == 2
    assert "nothing new" in again.out


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("2026-03-02..2026-03-01",), "ends before it starts"),
        (("2099-03-02",), "has not begun in UTC"),
        (("2026-03-02", "--timezone", "Mars/X"), "time zone"),
        (("March",), "no range of days"),
    ],
)
def test_wrong_use_is_found_before_a_server_is_needed(
    args: tuple[str, ...], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backfill", *args, "--traces", str(tmp_path), "--json"]) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert word in json.loads(said.out)["error"]["message"]
