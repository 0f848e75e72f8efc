"""The model client: one a process and configuration. What is saved is never bought again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from combee_core.answers import read_answer
from combee_core.base import content_hash
from combee_core.calls import Completion, Prompt, Receipt, Request
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerError,
    AnswerTruncated,
    ModelRefused,
    ModelTooLarge,
    RunStopped,
    StoreError,
    StoreUnavailable,
)
from combee_core.hedging import Unfit
from combee_core.ledger import Ledger
from combee_core.ports import LanguageModel, Question
from combee_core.saving import Rejection, SavedAnswer, SavedAnswers, path_of
from combee_core.sending import Call, Sender

T = TypeVar("T")

_STORE_PAUSES = (1, 2, 4, 8, 16, 30)


@dataclass(frozen=True)
class Answered(Generic[T]):
    """A parsed answer and the receipts of the calls that its prompt took, rejected ones included."""

    value: T
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True)
class _Found(Generic[T]):
    saved: SavedAnswer
    value: T


@dataclass
class Client:
    """Asks questions of a model for one learner version, on one event loop.

    `stage_version` is the learner's fingerprint. `sleep`, `clock` and `rng` are arguments so that tests need no clock.
    The greatest number of requests for one prompt is (retries + 1) × (waits + 1), where the retries are the
    caller's, and twice that where slow calls are sent once more: this client waits out 429 and 529, sends a slow call
    a second time, and repeats nothing else. Call `settle` at the end of a run.
    """

    model: LanguageModel
    answers: SavedAnswers
    settings: ModelSettings
    stage_version: str
    seed: int = 0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    rng: random.Random = field(default_factory=random.Random)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.answers.store)
        self._sender = Sender(self.model, self.settings, self.ledger, self.sleep, self.clock, self.rng)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._fresh: dict[str, list[Rejection]] = {}

    def begin(self, run: str, invocation: str = "") -> None:
        """Start an invocation of `run`: its counters stand at zero, and a stop of an earlier one is over.

        Nothing changes if `invocation`, the name that several processes share, has begun here already.
        """
        if self.ledger.begin(run, invocation):
            self._sender.gate.stop.clear()
            self._fresh.clear()

    def stop(self, reason: str) -> None:
        """Refuse with `RunStopped` every call that is not sent yet; calls in flight finish and are saved."""
        self._sender.gate.stop.set(RunStopped(reason))
        self._sender.flush()

    async def settle(self) -> None:
        """End a run: nothing is waited for, what lost a race is ended and booked, and the ledger is written."""
        await self._sender.settle()
        await asyncio.to_thread(self._sender.flush)

    async def aclose(self) -> None:
        """Stop, settle, and close the model's connections; for the end of the process, when there may be no threads."""
        self._sender.gate.stop.set(RunStopped("the client is closed: this process makes no more calls with it"))
        await self._sender.settle()
        self._sender.flush()
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    async def ask(self, question: Question[T], run: str, *, wide: bool = False, several: bool = False) -> Answered[T]:
        """The parsed answer, from the store if it was ever accepted, else bought and saved.

        Raises the leaves of `ModelError` and `AnswerError`. A rejected answer is counted in the store and raised:
        the caller's retry asks with the next attempt. Truncation gets one retry with twice the budget, then it is
        `final`; `wide` asks with twice the budget at once. What was refused in this invocation is refused again
        without a call. For a prompt on `several` items that holds for good: it is halved, which leads on. A single one
        is asked once more by the next invocation, when the cause may be gone.
        """
        key = self.key(question.prompt)
        # One at a time: the same question asked twice at once would be paid for twice.
        async with self._turns.setdefault(key, asyncio.Lock()):
            found, rejected = await asyncio.to_thread(self._look, question, key)
            if found is None:
                self._refuse_again(rejected if several else self._fresh.get(key, ()), wide)
                found = await self._call(question, key, rejected, run, wide)
                self._fresh.pop(key, None)
        paid = [r.receipt for r in rejected if r.receipt]
        return Answered(found.value, (*paid, found.saved.receipt))

    def key(self, prompt: Prompt) -> str:
        """Of a saved answer: stage version, prompt, model and sampling, trace or group."""
        identity = {**self._identity, "model": self.model.name, "seed": self.seed}
        return content_hash(self.stage_version, prompt.stage, prompt.sha, identity, prompt.item)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        return self.settings.identity()

    def _look(self, question: Question[T], key: str) -> tuple[_Found[T] | None, list[Rejection]]:
        """What the store has; where it has no answer, the prompt is fit to be sent. Blocks, so not on the loop."""
        values: list[T] = []
        saved, rejected = self.answers.find(key, _fits(question, values))
        if saved:
            return _Found(saved, values[-1]), rejected
        self._check_size(question.prompt)
        return None, rejected

    async def _call(
        self, question: Question[T], key: str, rejected: Sequence[Rejection], run: str, wide: bool
    ) -> _Found[T]:
        attempt, wide = len(rejected) + 1, wide or bool(_cuts(rejected))

        def read(completion: Completion, receipt: Receipt) -> _Found[T]:
            answer = read_answer(completion, use_reasoning=self.settings.use_reasoning)
            return _Found(SavedAnswer(answer=answer, receipt=receipt), question.parse(answer))

        async def keep(found: _Found[T]) -> _Found[T]:
            values: list[T] = []
            first = await self._save(key, found.saved, _fits(question, values))
            return found if first is found.saved else _Found(first, values[-1])

        request = self._request(question.prompt, attempt, wide)
        try:
            return await self._sender.answer(Call(request, run, attempt, read, keep))
        except Unfit as unfit:
            error = self._named(unfit, path_of(key, attempt), final=self._allowed_cuts(wide) == 1)
            kind, excerpt = type(error).__name__, unfit.error.excerpt
            rejection = Rejection(kind=kind, reason=str(error), excerpt=excerpt, receipt=unfit.receipt)
            await self._reject(key, attempt, rejection)
            raise error from unfit.error

    async def _save(self, key: str, saved: SavedAnswer, fits: Callable[[Any], bool]) -> SavedAnswer:
        """Save a paid answer, however long the store is away within reason; then nothing more is bought."""
        for pause in _STORE_PAUSES:
            try:
                return await asyncio.to_thread(self.answers.accept, key, saved, fits)
            except StoreUnavailable:
                await self.sleep(pause)
        try:
            return await asyncio.to_thread(self.answers.accept, key, saved, fits)
        except StoreError as error:
            self._sender.gate.stop.set(error)
            raise

    def _allowed_cuts(self, wide: bool) -> int:
        """Truncated answers that a prompt may have before it is given up: one where no retry would be wider."""
        return 1 if wide or not self.settings.retries else 2

    def _refuse_again(self, rejected: Sequence[Rejection], wide: bool) -> None:
        """A refusal and a final truncation stay what they were: asking again would be paid for nothing."""
        refusal = next((r for r in rejected if r.kind == ModelRefused.__name__), None)
        if refusal:
            raise ModelRefused(refusal.reason)
        cuts = _cuts(rejected)
        if len(cuts) >= self._allowed_cuts(wide):
            raise AnswerTruncated(cuts[-1].reason, True)

    def _named(self, unfit: Unfit, kept: str, *, final: bool) -> AnswerError | ModelRefused:
        """The same error, saying which model it was and where the answer's beginning is kept.

        A provider that refused the request has been named.
        """
        error = unfit.error
        message = f"{self.model.name}: {error}" if unfit.receipt else str(error)
        message += f"; its beginning is in the store: {kept}" if error.excerpt else ""
        return AnswerTruncated(message, final) if isinstance(error, AnswerTruncated) else type(error)(message)

    async def _reject(self, key: str, attempt: int, rejection: Rejection) -> None:
        self._fresh.setdefault(key, []).append(rejection)
        await asyncio.to_thread(self.answers.reject, key, attempt, rejection)

    @cached_property
    def limit(self) -> int | None:
        """The most input tokens of one call, where it is known. May load a model's library."""
        return self.settings.context_tokens or self.model.context_tokens

    def _check_size(self, prompt: Prompt) -> None:
        """Raise `ModelTooLarge` for a prompt beyond the limit. May load a model's library."""
        # A token has at least one byte, so most prompts need no counting.
        if self.limit is None or len(prompt.text.encode("utf-8", "replace")) <= self.limit:
            return
        size = self.model.count(prompt.text)
        if size > self.limit:
            raise ModelTooLarge(
                f"{prompt.item}: about {size} tokens, more than the {self.limit} that {self.model.name} takes"
            )

    def _request(self, prompt: Prompt, attempt: int, wide: bool) -> Request:
        return Request(
            prompt=prompt,
            max_output_tokens=self.settings.max_output_tokens * (2 if wide else 1),
            temperature=self.settings.temperature,
            seed=self.seed + attempt - 1,
            timeout=self.settings.timeout,
        )


def _fits(question: Question[T], values: list[T]) -> Callable[[Any], bool]:
    """Whether an answer can be used today: one saved by other code may not be, and then counts as absent.

    The value of one that fits is added to `values`.
    """

    def fits(answer: Any) -> bool:
        try:
            values.append(question.parse(answer))
        except AnswerError:
            return False
        return True

    return fits


def _cuts(rejected: Sequence[Rejection]) -> list[Rejection]:
    return [r for r in rejected if r.kind == AnswerTruncated.__name__]
