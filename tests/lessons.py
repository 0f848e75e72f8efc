"""Traces t01, t02, … that each teach one lesson, by number, and the diligent model that learns it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import builders

from combee_core.calls import Request
from combee_core.types import BulletTag, Group, Outcome, Reflection, Step, Trajectory


def trajectory(number: int, **changes: Any) -> Trajectory:
    """A run that went wrong and could teach lesson `number`."""
    steps = (Step(role="assistant", text="No idea."),)
    outcome = Outcome(score=0.0, label="wrong", feedback=f"expected {number}", source="ground_truth")
    given = {"steps": steps, "outcome": outcome, **changes}
    return builders.trajectory(**{"trace_id": f"t{number:02d}", "task": f"Question {number}?", **given})


def insight(number: int) -> str:
    """What trajectory `number` teaches; no two are similar."""
    words = ("falcon", "harbour", "violet", "glacier", "lantern", "meadow", "copper", "thunder", "orchid", "pepper")
    return f"{words[number % 10]}{number} demands {words[number * 7 % 10]} times {number * 13 + 7}"


def reflection(number: int, text: str | None = None, tags: Sequence[BulletTag] = ()) -> Reflection:
    """The reflection on trajectory `number`."""
    learned = insight(number) if text is None else text
    return Reflection(trace_id=f"t{number:02d}", key_insight=learned, tags=tuple(tags))


def group(*numbers: int, number: int = 1, of: int = 1) -> Group:
    """A group of those reflections."""
    return builders.group(*map(reflection, numbers), number=number, of=of)


def answer(request: Request) -> dict[str, Any]:
    """A diligent model: one insight a run, one ADD a distinct insight, and a merge that keeps everything."""
    last = request.prompt.messages[-1].content
    if request.prompt.stage == "reflect":
        found = re.search(r"Question (\d+)\?", last)
        learned = insight(int(found[1])) if found else ""
        return {"key_insight": learned, "reasoning": "", "bullet_tags": []}
    if request.prompt.stage == "curate":
        numbers: dict[str, list[int]] = {}
        for number, text in re.findall(r"^r(\d+)\. insight: (.*)$", last, re.MULTILINE):
            numbers.setdefault(text, []).append(int(number))
        return {"operations": [_added(text, cited) for text, cited in numbers.items()]}
    proposals = [(int(n), json.loads(data)) for n, data in re.findall(r"^o(\d+)\. (\{.*\})", last, re.MULTILINE)]
    return {"operations": [{**data, "from": [number]} for number, data in proposals], "dropped": []}


def _added(text: str, numbers: list[int]) -> dict[str, Any]:
    return {"type": "ADD", "section": "OTHERS", "content": text, "from": numbers}
