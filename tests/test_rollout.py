"""A sample is solved with the playbook and scored."""

from __future__ import annotations

from typing import Any

import pytest
from asking import client, run
from builders import EMPTY
from staging import REFUSAL, tools

from combee_core.client import Client
from combee_core.errors import ModelFault
from combee_core.rollout import rollout
from combee_core.scoring import SCORERS
from combee_core.testing import ScriptedModel
from combee_core.types import Sample

SAMPLE = Sample(id="s1", context="What is 6 times 7?", target="42")
SOLVED = {"reasoning": "six sevens", "bullet_ids": ["misc-00001"], "final_answer": "42"}


def solve(of: Client) -> Any:
    return run(rollout(SAMPLE, EMPTY, scorer=SCORERS["number"], **tools(of)))


def test_a_sample_becomes_a_scored_trajectory() -> None:
    rolled = solve(client(ScriptedModel([SOLVED])))
    assert rolled.sample_id == "s1"
    assert rolled.trajectory.trace_id == "s1"
    assert rolled.trajectory.task == SAMPLE.context
    assert rolled.trajectory.outcome.score == 1.0
    assert rolled.trajectory.cited == ("misc-00001",)
    assert "six sevens" in rolled.trajectory.steps[0].text
    assert [r.stage for r in rolled.receipts] == ["rollout"]


def test_a_wrong_answer_scores_zero_and_not_nothing() -> None:
    rolled = solve(client(ScriptedModel([{**SOLVED, "final_answer": "41"}])))
    assert rolled.trajectory.outcome.score == 0.0


def test_a_sample_that_is_refused_has_a_reason_and_no_trajectory() -> None:
    rolled = solve(client(ScriptedModel([REFUSAL])))
    assert rolled.trajectory is None
    assert "the model refused" in rolled.reason


def test_a_sample_that_is_too_large_says_so() -> None:
    rolled = solve(client(ScriptedModel([]), context_tokens=10))
    assert rolled.trajectory is None
    assert rolled.reason.startswith("too large: s1")


def test_other_errors_of_a_rollout_are_raised() -> None:
    with pytest.raises(ModelFault):
        solve(client(ScriptedModel([ModelFault("500")])))
