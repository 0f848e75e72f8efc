"""A model that fails as it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from combee_core.calls import Completion, Prices, Request
from combee_core.ports import LanguageModel

Faults = Mapping[int, Exception] | Callable[[int, Request], Exception | None]


class FlakyModel:
    """Another model, with errors on some calls; `calls` counts all of them, from 1.

    `faults` maps numbers of calls to errors, or is a function of the number and the request that gives an error or
    None. A call that fails does not reach the other model.
    """

    def __init__(self, model: LanguageModel, faults: Faults) -> None:
        self._model = model
        self._faults = faults
        self.calls = 0

    @property
    def name(self) -> str:
        """The other model's."""
        return self._model.name

    @property
    def context_tokens(self) -> int | None:
        """The other model's."""
        return self._model.context_tokens

    @property
    def prices(self) -> Prices | None:
        """The other model's."""
        return self._model.prices

    def count(self, text: str) -> int:
        """The other model's."""
        return self._model.count(text)

    async def preflight(self) -> None:
        """The other model's: the faults are for calls."""
        await self._model.preflight()

    async def complete(self, request: Request) -> Completion:
        """The other model's answer, or the fault of this call."""
        self.calls += 1
        fault = self._faults(self.calls, request) if callable(self._faults) else self._faults.get(self.calls)
        if fault is not None:
            raise fault
        return await self._model.complete(request)
