"""The golden check: nights of the simulated world cost what was estimated before they began."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from inline_nights import Night, asked, learn, write_day

from combee_core.adapters.ahead import Ahead
from combee_core.adapters.inputs import load_input
from combee_core.config import RunRequest
from combee_core.estimate import Estimate
from combee_core.outlook import estimate_days

BLIND = 0.15
"""Share by which tokens may be off before the first run."""

SIGHTED = 0.08
"""And where the store knows earlier ones."""

PAPER = {"grouping": "paper", "merge": "paper", "copies": 2}


def store() -> str:
    return f"memory://{uuid.uuid4().hex}"


def foreseen(request: RunRequest) -> Estimate:
    ahead = Ahead(request)
    return estimate_days([ahead.work(load_input(request.source))], ahead.basis).total


def compare(request: RunRequest) -> tuple[Estimate, Night]:
    """The estimate, made first, and the night."""
    expected = foreseen(request)
    return expected, learn(request)


def tokens(expected: Estimate) -> int:
    return expected.input_tokens + expected.output_tokens


def expected_calls(expected: Estimate) -> dict[str, int]:
    return {stage: count.expected for stage, count in expected.calls.items()}


def test_a_hundred_traces_in_the_papers_form_take_a_hundred_and_ten_and_one_call_as_planned(tmp_path: Path) -> None:
    expected, night = compare(asked(store(), write_day(tmp_path, 100), batch_size=100, **PAPER))
    assert night.calls == expected_calls(expected) == {"rollout": 0, "reflect": 100, "curate": 10, "merge": 1}
    assert tokens(expected) == pytest.approx(night.spend.tokens, rel=BLIND)
    assert expected.cost == night.spend.cost == 0
    assert 60 * expected.hours_at_least < night.minutes < 60 * expected.hours * 1.3


@pytest.mark.parametrize(("count", "size"), [(90, 40), (23, 10), (3, 3), (1, 40)])
def test_the_papers_form_takes_exactly_the_planned_calls(tmp_path: Path, count: int, size: int) -> None:
    expected, night = compare(asked(store(), write_day(tmp_path, count), batch_size=size, **PAPER))
    assert night.calls == expected_calls(expected)
    assert tokens(expected) == pytest.approx(night.spend.tokens, rel=BLIND)


@pytest.mark.parametrize(
    "form", [{"batch_size": 40}, {"batch_size": 120}, {"grouping": "bounded", "merge": "cluster", "batch_size": 60}]
)
def test_where_clusters_are_merged_only_those_calls_are_not_exact(tmp_path: Path, form: dict[str, Any]) -> None:
    expected, night = compare(asked(store(), write_day(tmp_path, 120), **form))
    planned, made = expected_calls(expected), night.calls
    assert {**planned, "merge": 0} == {**made, "merge": 0}
    assert expected.calls["merge"].at_most is None
    assert abs(planned["merge"] - made["merge"]) < 0.1 * 120
    assert tokens(expected) == pytest.approx(night.spend.tokens, rel=BLIND)


def test_a_night_after_others_is_estimated_from_what_they_were(tmp_path: Path) -> None:
    uri, form = store(), {"batch_size": 25, **PAPER}
    learn(asked(uri, write_day(tmp_path, 75), **form))
    expected, night = compare(asked(uri, write_day(tmp_path, 100, seed=1), **form))
    assert night.calls == expected_calls(expected)
    assert tokens(expected) == pytest.approx(night.spend.tokens, rel=SIGHTED)
    assert expected.bullets > 1000


def test_an_unfinished_night_costs_what_is_left_of_it(tmp_path: Path) -> None:
    request = asked(store(), write_day(tmp_path, 100), batch_size=25, **PAPER)
    learn(request, batches=2)
    rest = foreseen(request)
    ended = learn(request)
    assert ended.calls == expected_calls(rest)
    assert ended.calls["reflect"] == 50
    assert tokens(rest) == pytest.approx(ended.spend.tokens, rel=BLIND)


def test_a_finished_night_costs_nothing_more(tmp_path: Path) -> None:
    request = asked(store(), write_day(tmp_path, 20), batch_size=20)
    learn(request)
    rest = foreseen(request)
    assert (rest.traces, rest.cost, tokens(rest)) == (0, 0, 0)
