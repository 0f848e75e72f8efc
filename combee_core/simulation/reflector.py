"""The reflector: states the specific that the feedback gives away, and judges the bullets that were used."""

from __future__ import annotations

from typing import Any

from combee_core.simulation.asked import Asked
from combee_core.simulation.evidence import insight
from combee_core.simulation.run_text import Run, read_run
from combee_core.simulation.specifics import puzzle_in, stated_in


def reflect(asked: Asked) -> dict[str, Any]:
    """A right run yields tags and no insight; a wrong one at most one specific."""
    run = read_run(asked.last)
    learned = _insight(run)
    tag = _tag(run)
    return {
        "reasoning": "The outcome, compared with what was expected.",
        "error_identification": _error(run) if learned else "",
        "root_cause_analysis": "The agent did not know this." if learned else "",
        "correct_approach": "",
        "key_insight": learned,
        "bullet_tags": [{"id": bullet_id, "tag": tag} for bullet_id in dict.fromkeys(run.cited)],
    }


def _tag(run: Run) -> str:
    if run.score is None:
        return "neutral"
    return "helpful" if run.is_right else "harmful"


def _error(run: Run) -> str:
    return "The answer was wrong." if run.feedback else "The run shows a fault."


def _insight(run: Run) -> str:
    if run.is_right:
        return ""
    puzzle = puzzle_in(run.problem)
    stated = stated_in(run.feedback)
    fitting = [one for one in stated if puzzle and one.specific.topic == puzzle.topic]
    if fitting or stated:
        return (fitting or list(stated))[0].words
    return "" if puzzle else insight(run)
