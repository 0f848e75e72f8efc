"""Samples and the three ways to judge an answer."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import DATASETS, needs

from combee_core.base import content_hash
from combee_core.errors import UsageError
from combee_core.samples import read_samples
from combee_core.scoring import SCORERS, exact, formula, number, withheld
from combee_core.types import Sample

FORMULA = DATASETS / "formula_train_subset_500.jsonl"
FINER = DATASETS / "finer_val_batched_500_samples.jsonl"


def sample(target: str | None) -> Sample:
    return Sample(id="s", context="c", target=target)


def rows(*values: object) -> bytes:
    return "\n".join(json.dumps(value) for value in values).encode()


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("15", "15.0", True),
        ("1,500", "1500", True),
        (" 15.0\n", "15", True),
        ("1.5e1", "15", True),
        ("-0.0", "0", True),
        ("$15", "15", False),
        ("15%", "15", False),
        ("8.333", "8.33", False),
        ("15 dollars", "15", False),
        ("", "15", False),
        ("nan", "nan", False),
        ("inf", "inf", False),
        ("9" * 400, "9" * 400, False),
        ("1e999", "15", False),
        ("3*5", "15", False),
        ("__import__('os').getpid()", "15", False),
    ],
)
def test_formula_takes_the_exact_number_and_evaluates_nothing(answer, target, right):
    assert formula(sample(target), answer).score == float(right)


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        ("The ratio is $1,234.50.", "1234.5", True),
        ("15%", "15", True),
        ("−3 degrees", "-3", True),
        (".5", "0.5", True),
        ("2e3", "2000", True),
        ("2.0000001", "2.0", True),
        ("2.001", "2.0", False),
        ("first 3, then 2", "2", False),
        ("none", "2", False),
        ("2", "none", False),
        ("1e999", "1e999", False),
        ("0.0000001", "0", False),
    ],
)
def test_number_takes_the_first_number_within_a_millionth(answer, target, right):
    assert number(sample(target), answer).score == float(right)


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [
        (" Net Income\n", "net income", True),
        ("STRASSE", "straße", True),
        ("net  income", "net income", False),
    ],
)
def test_exact_ignores_case_and_surrounding_space(answer, target, right):
    assert exact(sample(target), answer).score == float(right)


def test_a_wrong_answer_is_told_with_what_was_expected():
    outcome = formula(sample("2.0"), "20")
    assert (outcome.feedback, outcome.label, outcome.source) == (
        "expected 2.0, got 20",
        "wrong",
        "ground_truth",
    )
    assert formula(sample("2.0"), " ").feedback == "expected 2.0, got nothing"
    assert len(exact(sample("a"), "x" * 10_000).feedback) < 300


def test_a_right_answer_is_told_shortly():
    outcome = formula(sample("2.0"), "2")
    assert (outcome.score, outcome.label, outcome.feedback) == (1.0, "right", "as expected: 2.0")


@pytest.mark.parametrize("name", SCORERS)
def test_without_a_target_nobody_judges(name):
    outcome = SCORERS[name](sample(None), "2")
    assert (outcome.score, outcome.source, outcome.label) == (None, "none", "no target")


def test_the_scorers_have_the_names_that_commands_take():
    assert sorted(SCORERS) == ["exact", "formula", "number"]


@given(st.sampled_from(sorted(SCORERS)), st.text(), st.text())
def test_no_answer_raises_and_none_is_both_right_and_wrong(name, target, answer):
    outcome = SCORERS[name](sample(target), answer)
    assert (outcome.score, outcome.label) in {(1.0, "right"), (0.0, "wrong")}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_equals_itself_in_each_scorer(value):
    for judge in SCORERS.values():
        assert judge(sample(repr(value)), repr(value)).score == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_number_is_never_stricter_than_formula(left, right):
    if formula(sample(repr(left)), repr(right)).score:
        assert number(sample(repr(left)), repr(right)).score


def test_samples_are_read_in_order_and_named_after_their_context():
    first, second = read_samples(rows({"context": "a", "target": "1"}, {"context": "b", "target": 2.5}), "f")
    assert (first.id, first.target) == (f"sample-{content_hash('a')[:12]}", "1")
    assert (second.context, second.target) == ("b", "2.5")


def test_an_id_of_the_row_is_kept_and_a_target_may_be_missing():
    (only,) = read_samples(rows({"id": 7, "context": "a"}), "f")
    assert (only.id, only.target) == ("7", None)


def test_a_repeated_sample_counts_once():
    twice = rows({"context": "a", "target": "1"}, {"context": "a", "target": "1"})
    assert len(read_samples(twice, "f")) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"target": "1"},
        {"context": "", "target": "1"},
        {"context": 5, "target": "1"},
        {"context": "b", "target": [1]},
        {"context": "b", "target": True},
        {"context": "a", "target": "2"},
        "text",
        [1],
        None,
    ],
)
def test_a_bad_row_is_refused_with_its_file_and_line(bad):
    with pytest.raises(UsageError, match=r"^day/s\.jsonl:2: "):
        read_samples(rows({"context": "a", "target": "1"}, bad), "day/s.jsonl")


def test_a_cut_line_is_refused_too():
    with pytest.raises(UsageError, match="s:1: not a whole JSON record"):
        read_samples(b'{"context": "a"', "s")


def test_no_sample_is_no_error():
    assert read_samples(b"", "s") == ()


@needs(FORMULA)
def test_the_real_formula_samples_are_read_and_judged():
    samples = read_samples(FORMULA.read_bytes(), "formula")
    assert len(samples) == len({s.id for s in samples}) == 500
    assert {formula(s, s.target or "").score for s in samples} == {1.0}
    percent = [formula(s, f"{s.target}%").score for s in samples]
    assert percent == [0.0] * 500
    assert all(math.isfinite(float(s.target or "nan")) for s in samples)


@needs(FINER)
def test_the_repeated_real_sample_counts_once():
    assert len(read_samples(FINER.read_bytes(), "finer")) == 499


@pytest.mark.parametrize("answer", ["20", "SECRET", ""])
def test_without_ground_truth_the_reward_is_all_that_is_told(answer: str) -> None:
    outcome = withheld(SCORERS["exact"])(Sample(id="s", context="?", target="SECRET"), answer)
    assert outcome.score == float(answer == "SECRET")
    assert outcome.feedback == f"reward {outcome.score:g}"
    assert outcome.source == "reward"
