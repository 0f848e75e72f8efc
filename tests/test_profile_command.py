"""`combee profile` after a night: the table, the chart, the reason, JSON and pictures of what was measured."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from command import Combee

from combee_core import measured
from combee_core.adapters.stores import open_store
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World

CANDIDATES = (5, 10, 20)
TOTAL = 72


@pytest.fixture(scope="module")
def store(combee: Combee, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which a night has measured."""
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "day.jsonl").write_bytes(day_jsonl(World(0), TOTAL, 0, date(2026, 3, 2)))
    where = ("--store", f"file://{folder}/store")
    night = ("nightly", "--traces", folder, "--day", "2026-03-02", "--model", "simulated/overload")
    assert combee(*night, *where, "--candidates", ",".join(map(str, CANDIDATES)), "--json").code == 0
    return f"file://{folder}/store"


def test_the_text_holds_the_chart_a_row_for_each_size_and_the_reason(combee: Combee, store: str) -> None:
    done = combee("profile", "--store", store)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    (known,) = measured.all_known(open_store(store))
    assert lines[0].startswith("simulated/overload · ace · traces ")
    assert lines[1] == f"measured in run {known.run}"
    chart = "\n".join(line for line in lines if "│" in line or "┤" in line)
    assert chart.count("●") == len(CANDIDATES)
    assert "·" in chart
    head = next(number for number, line in enumerate(lines) if "delay (s)" in line)
    assert lines[head].split("  ")[-1] == "note"
    rows = {int(line.split()[0]): line for line in lines[head + 1 : lines.index("", head)]}
    assert set(CANDIDATES) <= set(rows)
    chosen = [size for size, line in rows.items() if "chosen (" in line]
    reason = next(line for line in lines if line.startswith("batch size "))
    assert [reason.partition(":")[0]] == [f"batch size {size}" for size in chosen]
    assert "of its steepest slope" in reason


def test_json_is_one_object_with_the_measurements_and_the_decision_of_each_curve(combee: Combee, store: str) -> None:
    (curve,) = combee("profile", "--store", store, "--json").json["curves"]
    (known,) = measured.all_known(open_store(store))
    assert measured.Measured.model_validate({k: v for k, v in curve.items() if k != "decision"}) == known
    assert [one["batch_size"] for one in curve["observations"]] == list(CANDIDATES)
    assert [point["batch_size"] for point in curve["decision"]["fit"]["points"]] == list(CANDIDATES)
    assert curve["decision"]["total"] == curve["total"] == TOTAL
    assert curve["decision"]["batch_size"] >= CANDIDATES[0]


def test_another_total_and_another_cap_are_decided_on_without_measuring(combee: Combee, store: str) -> None:
    (curve,) = combee("profile", "--store", store, "--total", 500, "--cap", 7, "--json").json["curves"]
    assert (curve["decision"]["total"], curve["decision"]["batch_size"], curve["decision"]["bound_by"]) == (
        500,
        7,
        "cap",
    )
    assert curve["total"] == TOTAL


def test_pictures_are_written(combee: Combee, store: str, tmp_path: Path) -> None:
    png, svg = tmp_path / "curve.png", tmp_path / "curve.svg"
    done = combee("profile", "--store", store, "--png", png, "--svg", svg)
    assert done.code == 0, done.err
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert svg.read_bytes().startswith(b"<?xml")
    assert b"<svg" in svg.read_bytes()


def test_a_store_without_measurements_ends_with_2_and_says_how_to_measure(combee: Combee, tmp_path: Path) -> None:
    for more in ((), ("--json",), ("--png", tmp_path / "x.png")):
        done = combee("profile", "--store", f"file://{tmp_path}/empty", *more)
        assert done.code == 2
        assert f"{tmp_path}/empty holds no measured delays" in done.err
        assert "--batch-size auto" in done.err
        assert "Traceback" not in done.err
    assert not (tmp_path / "x.png").exists()
