"""The curve as text, and as rows."""

from __future__ import annotations

import math

import pytest
from curves import FORMULA, epochs, law, seen

from combee_core.batch_size import decide
from combee_core.charts import extent, fit_chart, fit_table, time_unit
from combee_core.config import SizeSettings
from combee_core.sizes import Observation

DECISION = decide(epochs(FORMULA), SizeSettings(), 500)


@pytest.mark.parametrize("width", [40, 72, 120])
def test_the_chart_keeps_to_its_width(width: int) -> None:
    assert max(map(len, fit_chart(DECISION, width).splitlines()[:-2])) <= width


def test_the_chart_shows_points_curve_and_choice() -> None:
    chart = fit_chart(DECISION)
    *picture, _, ticks, legend = chart.splitlines()
    drawn = "\n".join(picture)
    assert drawn.count("●") == len(FORMULA)
    assert drawn.count("◆") == 1
    assert drawn.count("·") > 30
    assert ticks.split() == ["5", "10", "25", "50", "100"]
    assert "chosen: 54" in legend
    assert "epoch, min" in chart


def test_the_axis_has_plain_numbers() -> None:
    chart = fit_chart(decide(seen({5: 4.5, 10: 5.0, 20: 5.8, 40: 6.5}), SizeSettings(), 160))
    labels = [line.partition("┤")[0].strip() for line in chart.splitlines() if "┤" in line]
    assert len(labels) == 4
    assert all(float(label) > 0 and "e" not in label for label in labels)


def test_larger_sizes_lie_further_right_and_shorter_times_further_down() -> None:
    rows = [line for line in fit_chart(DECISION).splitlines()[:-1] if "●" in line]
    columns = [row.index("●") for row in rows]
    assert columns == sorted(columns)
    assert len(rows) >= 4


def test_a_choice_far_beyond_the_measurements_is_said_and_not_drawn() -> None:
    decision = decide(seen({5: 10.0, 10: None, 20: None}), SizeSettings(candidates=(60,)), 500)
    assert decision.batch_size == 60
    chart = fit_chart(decision)
    assert "right of the picture" in chart
    assert "╎" not in chart
    assert extent(decision)[0] < 60


def test_without_a_curve_the_points_are_drawn_and_without_points_it_is_said() -> None:
    chart = fit_chart(decide(seen({5: 10.0, 10: 12.0, 20: None}), SizeSettings(), 500))
    assert "\n".join(chart.splitlines()[:-1]).count("●") == 2
    assert "nothing was measured" in fit_chart(decide([], SizeSettings(), 500))


@pytest.mark.parametrize(
    "observations", [law(lambda n: 10.0), law(lambda n: 0.1 * n**1.5), law(lambda n: 1e-9), law(lambda n: 1e12)]
)
@pytest.mark.parametrize("total", [0, 3, 10**6])
def test_any_decision_can_be_drawn(observations: list[Observation], total: int) -> None:
    decision = decide(observations, SizeSettings(), total)
    assert "batch size" in fit_chart(decision)
    assert all(math.isfinite(end) and end > 0 for end in extent(decision))
    assert fit_table(decision)


@pytest.mark.parametrize(
    ("longest", "unit"), [(0.0, "s"), (179.0, "s"), (180.0, "min"), (10_000.0, "min"), (11_000.0, "h")]
)
def test_times_are_told_in_the_unit_that_reads_well(longest: float, unit: str) -> None:
    assert time_unit(longest)[1] == unit


def test_the_table_has_a_row_for_each_size_and_for_the_choice() -> None:
    rows = fit_table(DECISION)
    assert [row["size"] for row in rows] == ["5", "10", "25", "50", "54", "100"]
    assert len({tuple(row) for row in rows}) == 1
    first, chosen = rows[0], rows[4]
    assert first == {
        "size": "5",
        "delay (s)": "29.8",
        "epoch (s)": "2,981",
        "fitted (s)": "2,965",
        "gain (%)": "100",
        "note": "",
    }
    assert (chosen["delay (s)"], chosen["epoch (s)"]) == ("", "")
    assert chosen["gain (%)"] == "1.61"
    assert chosen["note"] == "chosen (plateau)"


def test_the_table_names_what_was_left_out_and_how_often_a_size_was_measured() -> None:
    repeats = [Observation(batch_size=5, delay=delay) for delay in (9.0, 10.0, 12.0)]
    rows = fit_table(decide([*repeats, *seen({10: None, 20: 20.0, 40: 30.0, 80: math.nan})], SizeSettings(), 500))
    notes = {row["size"]: row["note"] for row in rows}
    assert "median of 3" in notes["5"]
    assert "30 %" in notes["5"]
    assert notes["10"].startswith("left out: ")
    assert "nan" in notes["80"]
    assert [int(row["size"]) for row in rows] == sorted(int(row["size"]) for row in rows)


def test_the_table_says_which_size_was_measured_cold_only() -> None:
    rows = fit_table(decide(seen({5: 30.0, 10: 36.0, 20: 45.0}, 5), SizeSettings(), 500))
    assert rows[0]["note"] == "measured cold only"


def test_without_a_curve_nothing_is_fitted_in_the_table() -> None:
    rows = fit_table(decide(seen({5: 10.0, 10: 12.0, 20: None}), SizeSettings(), 500))
    assert [row["size"] for row in rows] == ["5", "10", "20", "40"]
    assert not any(row["fitted (s)"] or row["gain (%)"] for row in rows)
