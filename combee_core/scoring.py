"""Scorers: an answer against a sample's target. Nothing of either is ever evaluated as code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from combee_core.base import clip
from combee_core.ports import Scorer
from combee_core.types import Outcome, Sample

_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TOLERANCE = 1e-6
_SHOWN = 200


def exact(sample: Sample, answer: str) -> Outcome:
    """Right if equal as text; case and surrounding space do not matter."""
    return _judge(sample, answer, lambda target: answer.strip().casefold() == target.strip().casefold())


def number(sample: Sample, answer: str) -> Outcome:
    """Right if the first number in the answer is the target's first, within one part in a million."""
    return _judge(sample, answer, lambda target: _close(_first_number(answer), _first_number(target)))


def formula(sample: Sample, answer: str) -> Outcome:
    """Right if the whole answer, without commas, is exactly the target's number: 15 for 15.0, not $15 or 15%.

    The rule of the Formula data set in the ACE paper's public code, without its evaluation of the text.
    """
    return _judge(sample, answer, lambda target: _equal(_whole(answer.replace(",", "")), _whole(target)))


SCORERS: dict[str, Scorer] = {"exact": exact, "number": number, "formula": formula}
"""By the name that `--scorer` takes."""


def withheld(scorer: Scorer) -> Scorer:
    """The same judge with a closed mouth: the reward alone, nothing of what was expected."""

    def reward_alone(sample: Sample, answer: str) -> Outcome:
        outcome = scorer(sample, answer)
        feedback = "" if outcome.score is None else f"reward {outcome.score:g}"
        return outcome.model_copy(update={"feedback": feedback, "source": "reward"})

    return reward_alone


def _judge(sample: Sample, answer: str, is_right: Callable[[str], bool]) -> Outcome:
    if sample.target is None:
        return Outcome(label="no target")
    if is_right(sample.target):
        return Outcome(score=1.0, label="right", feedback=f"as expected: {sample.target}", source="ground_truth")
    got = answer.strip() or "nothing"
    return Outcome(
        score=0.0, label="wrong", feedback=f"expected {sample.target}, got {clip(got, _SHOWN)}", source="ground_truth"
    )


def _whole(text: str) -> float:
    """The text as one finite number, else NaN, which equals nothing."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _first_number(text: str) -> float:
    found = _NUMBER.search(text.replace("−", "-"))
    return _whole(found[0].replace(",", "")) if found else math.nan


def _equal(left: float, right: float) -> bool:
    return left == right


def _close(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=_TOLERANCE)
