"""The curve as PNG and SVG."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from curves import FORMULA, epochs, law, seen

from combee_core.adapters.pictures import Kind, fit_picture
from combee_core.batch_size import decide
from combee_core.config import SizeSettings
from combee_core.sizes import Decision, Observation

DECISION = decide(epochs(FORMULA), SizeSettings(), 500)
KINDS: list[Kind] = ["png", "svg"]
ROOT = Path(__file__).parents[1]
CURVE, CHOICE = "#2a6f97", "#c8553d"


def words(svg: bytes) -> str:
    """What is written in the picture: glyphs are drawn, their text stands in comments."""
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL))


def test_a_png_is_nine_hundred_pixels_wide() -> None:
    png = fit_picture(DECISION, "png")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (900, 480)


def test_an_svg_is_well_formed_and_says_what_was_chosen_and_why() -> None:
    svg = fit_picture(DECISION, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")
    written = words(svg)
    assert "Batch size 54" in written
    assert "steepest slope" in written
    assert "chosen: 54" in written
    assert "1.6 % of it, at 54.2" in written
    assert "time of an epoch of 500 (min)" in written
    assert "batch size (traces or samples)" in written


def test_curve_and_choice_are_drawn() -> None:
    svg = fit_picture(DECISION, "svg").decode()
    assert CURVE in svg
    assert CHOICE in svg


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_decision_gives_the_same_bytes(kind: Kind) -> None:
    assert fit_picture(DECISION, kind) == fit_picture(DECISION.model_copy(), kind)
    assert fit_picture(DECISION, kind) != fit_picture(DECISION.model_copy(update={"batch_size": 60}), kind)


def test_neither_time_nor_program_is_written_into_a_picture() -> None:
    assert b"Software" not in fit_picture(DECISION, "png")
    svg = fit_picture(DECISION, "svg")
    assert b"dc:date" not in svg
    assert b"dc:creator" not in svg


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "decision",
    [
        decide([], SizeSettings(), 500),
        decide(seen({5: 10.0}), SizeSettings(), 500),
        decide(seen({5: 10.0, 10: 12.0, 20: None}), SizeSettings(), 500),
        decide(law(lambda n: 10.0), SizeSettings(cap=20), 0),
        decide(law(lambda n: 0.1 * n**1.5), SizeSettings(), 500),
        decide(seen({5: 30.0, 10: 36.0, 20: 4500.0, 40: 55.0, 80: 70.0}), SizeSettings(peak="difference"), 500),
        decide(seen({5: 10.0, 10: None, 20: None}), SizeSettings(candidates=(60,)), 500),
    ],
    ids=["nothing", "one size", "two of three", "total 0", "rising", "outlier", "far choice"],
)
def test_any_decision_can_be_drawn(decision: Decision, kind: Kind) -> None:
    assert len(fit_picture(decision, kind)) > 5_000


def test_a_choice_far_to_the_right_is_said() -> None:
    decision = decide(seen({5: 10.0, 10: None, 20: None}), SizeSettings(candidates=(60,)), 500)
    assert "chosen: 60, further right" in words(fit_picture(decision, "svg"))


def test_text_of_a_reason_is_not_read_as_a_formula() -> None:
    decision = DECISION.model_copy(update={"reason": "costs $5 and $\\frac{1$"})
    assert fit_picture(decision, "png")


def test_repeats_are_drawn_with_their_spread() -> None:
    repeats = [Observation(batch_size=size, delay=d * size**0.4) for size in (5, 10, 20) for d in (9.0, 10.0, 12.0)]
    once = [Observation(batch_size=size, delay=10 * size**0.4) for size in (5, 10, 20)]
    bars = [
        fit_picture(decide(seen_delays, SizeSettings(), 500), "svg").count(b"LineCollection")
        for seen_delays in (repeats, once)
    ]
    assert bars[0] > bars[1]


def test_a_users_style_changes_nothing() -> None:
    import matplotlib

    plain = fit_picture(DECISION, "png")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        assert fit_picture(DECISION, "png") == plain


def test_without_matplotlib_the_error_names_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from combee_core.adapters.pictures import fit_picture
from combee_core.batch_size import decide
from combee_core.config import SizeSettings
from combee_core.errors import UsageError
try:
    fit_picture(decide([], SizeSettings(), 500), "png")
except UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pictures need matplotlib: pip install 'combee-pipeline[pipeline]'"


def test_the_controller_needs_none_of_the_heavy_libraries() -> None:
    code = """
import sys
from combee_core.adapters import pictures
from combee_core.batch_size import decide
from combee_core.charts import fit_chart, fit_table
from combee_core.config import SizeSettings
from combee_core.sizes import Observation
decision = decide([Observation(batch_size=n, delay=n**0.3) for n in (5, 10, 20, 40)], SizeSettings(), 500)
fit_chart(decision), fit_table(decision)
print(decision.bound_by, sorted({"numpy", "scipy", "matplotlib", "pandas"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "plateau []"
