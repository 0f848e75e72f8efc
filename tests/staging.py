"""The stages that call a model, run as the orchestrator runs them, on a diligent model with exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asking import run
from builders import ACE
from lessons import answer
from run_records import KEY

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.errors import CombeeError
from combee_core.types import Delta

REFUSAL = Completion(text=None, refusal="I will not read that")
FILTERED = Completion(text=None, finish="content_filter")
CUT = Completion(text="{", finish="length", usage=Usage(input_tokens=1, output_tokens=1, cost=0.25))


def tools(of: Client) -> dict[str, Any]:
    """What every stage is given."""
    return {"learner": ACE, "client": of, "run": KEY}


def retried(stage: Callable[[], Any], retries: int = 2) -> Any:
    """A stage as the orchestrator runs it."""
    for _ in range(retries):
        try:
            return run(stage())
        except CombeeError as error:
            if not error.retryable:
                raise
    return run(stage())


def last(request: Request) -> str:
    """What the model reads last."""
    return request.prompt.messages[-1].content


def unless(bad: Callable[[Request], bool], instead: Any) -> Callable[[Request], Any]:
    """A diligent model, but for some requests."""
    return lambda request: instead if bad(request) else answer(request)


def texts(delta: Delta) -> list[str]:
    """What its operations say."""
    return [op.text for op in delta.operations]
