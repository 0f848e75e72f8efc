"""A model that answers from a script."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from combee_core.base import estimate
from combee_core.calls import Completion, Prices, Request, Usage
from combee_core.errors import ModelFault

Answer = Completion | Exception | Mapping[str, Any] | str
"""A raw answer as it is; an error to raise; an object, sent as JSON; or the text that the model says."""

Script = Callable[[Request], Answer | Awaitable[Answer]] | Sequence[Answer]


class ScriptedModel:
    """Answers from a function of the request (it may be a coroutine function), or from a list in its order.

    `requests` holds every request in the order of its arrival, `in_flight` how many are being answered and `most`
    the greatest number so far. An answer that is no `Completion` costs ten tokens in, five out, and no money. Past
    the end of a list it raises `ModelFault`.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted/model",
        context_tokens: int | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._script = script
        self._name = name
        self._context_tokens = context_tokens
        self._prices = prices
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most = 0

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def context_tokens(self) -> int | None:
        """As given."""
        return self._context_tokens

    @property
    def prices(self) -> Prices | None:
        """As given."""
        return self._prices

    def count(self, text: str) -> int:
        """An estimate."""
        return estimate(text)

    async def preflight(self) -> None:
        """It is always there."""

    @property
    def items(self) -> list[str]:
        """Which trace, group or sample each request was about."""
        return [request.prompt.item for request in self.requests]

    async def complete(self, request: Request) -> Completion:
        """The next answer of the script."""
        self.requests.append(request)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            return self._completion(await self._next(request))
        finally:
            self.in_flight -= 1

    async def _next(self, request: Request) -> Answer:
        if callable(self._script):
            answer = self._script(request)
            return await answer if inspect.isawaitable(answer) else answer
        at = len(self.requests) - 1
        if at >= len(self._script):
            return ModelFault(f"{self._name}: the script has {len(self._script)} answers, this is call {at + 1}")
        return self._script[at]

    def _completion(self, answer: Answer) -> Completion:
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Completion):
            return answer if answer.model else answer.model_copy(update={"model": self._name})
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Completion(text=text, usage=Usage(input_tokens=10, output_tokens=5, cost=0.0), model=self._name)
