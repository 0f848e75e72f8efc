"""The simulated model behind the port, in process: no network, no waiting, no cost."""

from __future__ import annotations

from combee_core.base import estimate
from combee_core.calls import FREE, Completion, Prices, Request, Usage
from combee_core.simulation.overload import DEFAULT_MODEL, Merger, curve_of, merged
from combee_core.simulation.responder import answer_text


class SimulatedModel:
    """Answers any prompt of the pipeline; raises `UsageError` for a name that is not a simulated model's.

    `merger` is for experiments: answers of different ones must not be saved in one store.
    """

    def __init__(self, name: str = DEFAULT_MODEL, merger: Merger = merged) -> None:
        self._name = name
        self._merger = merger
        self._curve = curve_of(name)

    @property
    def name(self) -> str:
        """`simulated/overload` or another of `MODELS`."""
        return self._name

    @property
    def context_tokens(self) -> int | None:
        """No limit is known."""
        return None

    @property
    def prices(self) -> Prices | None:
        """It costs nothing."""
        return FREE

    def count(self, text: str) -> int:
        """An estimate."""
        return estimate(text)

    async def preflight(self) -> None:
        """It is always there."""

    async def complete(self, request: Request) -> Completion:
        """The answer; the same for the same messages and seed, in whatever order they are asked."""
        text = answer_text(request.prompt.messages, request.seed, self._curve, self._merger)
        usage = Usage(input_tokens=estimate(request.prompt.text), output_tokens=estimate(text), cost=0.0)
        return Completion(text=text, usage=usage, model=self._name)
