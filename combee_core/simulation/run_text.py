"""A run as the reflector's prompt shows it, read back from the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OUTCOME = re.compile(r"score: (?P<score>\S+)\nlabel: ?(?P<label>.*)\nfeedback: ?(?P<feedback>.*)")
_STEP = re.compile(r"\[\d+\] (?P<role>system|user|assistant|tool|call)(?: (?P<name>[^:]*))?:(?: (?P<text>.*))?")


@dataclass(frozen=True)
class Event:
    """One line of a run: a message, or a call (`role` "call", `name` the tool, `text` its arguments)."""

    role: str
    name: str
    text: str


@dataclass(frozen=True)
class Run:
    """Problem, events, outcome, and the ids of the bullets that the agent used."""

    problem: str
    events: tuple[Event, ...]
    score: float | None
    feedback: str
    cited: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """True for a full score; a run that nobody scored is not right."""
        return self.score is not None and self.score >= 1


def read_run(text: str) -> Run:
    """Read the reflector's message.

    Headings are looked for from the end: steps and feedback stand on one line each and cannot hold one,
    while the problem at the front may hold anything.
    """
    rest, _, cited = text.rpartition("\n## Bullets the agent used\n")
    rest, _, outcome = rest.rpartition("\n## Outcome\n")
    head, _, steps = rest.rpartition("\n## Run\n")
    found = _OUTCOME.search(outcome)
    return Run(
        problem=head.partition("## Problem")[2].strip(),
        events=tuple(_event(step) for step in map(_STEP.fullmatch, steps.split("\n")) if step),
        score=_score(found["score"]) if found else None,
        feedback=found["feedback"].strip() if found else "",
        cited=tuple(name for name in cited.strip().split(", ") if name not in ("", "none")),
    )


def _event(step: re.Match[str]) -> Event:
    return Event(step["role"], (step["name"] or "").strip(), step["text"] or "")


def _score(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
