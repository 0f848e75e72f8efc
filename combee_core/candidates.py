"""The models that may be asked: the first, and those that are asked in its place; each with a breaker of its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from combee_core.causes import cause, grouped
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerError,
    AnswerTruncated,
    CombeeError,
    ModelError,
    ModelFailing,
    ModelRefused,
    ModelTimeout,
    ModelTooLarge,
    ModelUnusable,
    ModelUseless,
)
from combee_core.events import event
from combee_core.ports import LanguageModel
from combee_core.sending import Sender

_SILENCE = 0.5
"""Of a time-out: a model that has said nothing for so long hangs; one that is only slow answers somebody meanwhile."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Candidate:
    """A model that may be asked, how calls to it are made, and how it has done in this invocation.

    `lost` are the reasons of the calls that failed finally, or in silence, since its last good answer, `useless` those
    of the answers that could not be used.
    """

    settings: ModelSettings
    model: LanguageModel
    sender: Sender
    failures: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    useless: list[str] = field(default_factory=list)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What its answers depend on."""
        return {**self.settings.identity(), "model": self.model.name}

    @property
    def is_out(self) -> bool:
        """True when it is asked no more."""
        return self.sender.gate.stop.is_set

    def is_done_with(self, key: str) -> bool:
        """True when it is not asked about this any more: it is out, or has used up its attempts."""
        return self.is_out or self.failures[key] > self.settings.retries

    def begin(self) -> None:
        """A new invocation: what happened before is over."""
        self.sender.gate.stop.clear()
        self.failures.clear()
        self._recover()

    def answered(self, key: str) -> None:
        """A good answer came."""
        self.failures.pop(key, None)
        self._recover()

    def failed(self, key: str, error: CombeeError) -> bool:
        """Note an error; True where another model may be asked about `key` in its place.

        After `breaker` final failures in a row, or as many useless answers, the model is out. A time-out counts at
        once where the model has said nothing for half of that time: else one that hangs would cost every retry in full.
        """
        if not isinstance(error, ModelError | AnswerError) or isinstance(error, ModelTooLarge):
            return False
        if isinstance(error, ModelUnusable):
            return True
        self.failures[key] += error.retryable
        is_final = not error.retryable or self.failures[key] > self.settings.retries
        if isinstance(error, AnswerError | ModelRefused):
            # A first answer that was cut is asked for with more room.
            self.useless += [cause(error)] if is_final or not isinstance(error, AnswerTruncated) else []
        elif is_final or self._is_silent(error):
            self.lost.append(cause(error))
        self._break()
        return is_final and not isinstance(error, AnswerTruncated | ModelRefused)

    def _is_silent(self, error: CombeeError) -> bool:
        silence = self.sender.clock() - self.sender.liveness.heard
        return isinstance(error, ModelTimeout) and silence >= _SILENCE * self.settings.timeout

    def _break(self) -> None:
        most = self.settings.breaker
        for what, causes, leaf in (
            ("calls in a row failed", self.lost, ModelFailing),
            ("answers in a row are useless", self.useless, ModelUseless),
        ):
            if most and len(causes) >= most and not self.is_out:
                why = f"{len(causes)} {what}: {grouped(causes)}"
                text = f"{self.model.name}: {why}; it is asked no more (--breaker {most})"
                event(_log, logging.WARNING, "breaker", text, model=self.model.name, causes=len(causes))
                self.sender.gate.stop.set(leaf(text))

    def _recover(self) -> None:
        self.lost.clear()
        self.useless.clear()


class Candidates:
    """All models of a client, in the order in which they are asked; `make` builds one from its settings."""

    def __init__(self, settings: ModelSettings, make: Callable[[ModelSettings], Candidate]) -> None:
        self._settings = settings
        self._all = {_which(one): make(one) for one in settings.everyone}

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._all.values())

    @property
    def first(self) -> Candidate:
        """The one that is asked before all others."""
        return self._all[_which(self._settings)]

    def at(self, stage: str) -> list[Candidate]:
        """Those that may be asked at a stage."""
        return [self._all[one] for one in dict.fromkeys(map(_which, self._settings.chain(stage)))]

    def begin(self) -> None:
        """A new invocation, for all of them."""
        for candidate in self:
            candidate.begin()

    def halt(self, error: CombeeError) -> None:
        """Refuse every new call with `error`; calls in flight finish."""
        for candidate in self:
            candidate.sender.gate.stop.set(error)

    async def settle(self) -> None:
        """End what lost a race and is still under way."""
        for candidate in self:
            await candidate.sender.settle()

    def flush(self) -> None:
        """Write the ledger that they share."""
        self.first.sender.flush()

    async def aclose(self) -> None:
        """Close the models' connections."""
        for candidate in self:
            close = getattr(candidate.model, "aclose", None)
            if close is not None:
                await close()


def _which(settings: ModelSettings) -> tuple[str, str | None]:
    return settings.model, settings.api_base
