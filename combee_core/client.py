"""The model client: one a process and configuration. Saved answers, waits, limits and the ledger live here, once."""

from __future__ import annotations

import asyncio
import random
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
    CombeeError,
    ModelBusy,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
    RunStopped,
    StoreError,
    StoreUnavailable,
)
from combee_core.ledger import Ledger
from combee_core.ports import LanguageModel, Question
from combee_core.saving import Rejection, SavedAnswer, SavedAnswers

T = TypeVar("T")

_JITTER = 0.25
_LONGEST_PAUSE = 60.0
_STORE_PAUSES = (1, 2, 4, 8, 16, 30)


@dataclass(frozen=True)
class Answered(Generic[T]):
    """A parsed answer and the receipts of the calls that its prompt took, rejected ones included."""

    value: T
    receipts: tuple[Receipt, ...]


@dataclass
class Client:
    """Asks questions of a model for one learner version, on one event loop.

    `stage_version` is the learner's fingerprint. `sleep` and `rng` are arguments so that tests need no clock.
    The greatest number of requests for one prompt is (retries + 1) × (waits + 1), where the retries are the
    caller's: this client waits out 429 and 529 and repeats nothing else.
    """

    model: LanguageModel
    answers: SavedAnswers
    settings: ModelSettings
    stage_version: str
    seed: int = 0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.answers.store)
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._stopped: CombeeError | None = None
        self._fresh: dict[str, list[Rejection]] = {}

    def begin(self, run: str) -> None:
        """Start an invocation of `run`: its counters stand at zero, and a stop of an earlier one is over."""
        self.ledger.begin(run)
        self._stopped = None
        self._fresh.clear()

    def stop(self, reason: str) -> None:
        """Refuse every new call with `RunStopped`; calls in flight finish and are saved."""
        self._stopped = RunStopped(reason)

    async def ask(self, question: Question[T], run: str, *, wide: bool = False, several: bool = False) -> Answered[T]:
        """The parsed answer, from the store if it was ever accepted, else from one call.

        Raises the leaves of `ModelError` and `AnswerError`. A rejected answer is counted in the store and raised:
        the caller's retry asks with the next attempt. Truncation gets one retry with twice the budget, then it is
        `final`; `wide` asks with twice the budget at once. What was refused in this invocation is refused again
        without a call. For a prompt on `several` items that holds for good: it is halved, which leads on. A single one
        is asked once more by the next invocation, when the cause may be gone.
        """
        key = self.key(question.prompt)
        # One at a time: the same question asked twice at once would be paid for twice.
        async with self._turns.setdefault(key, asyncio.Lock()):
            saved = await asyncio.to_thread(self.answers.accepted, key, _fits(question))
            rejected = await asyncio.to_thread(self.answers.rejections, key)
            if saved is None:
                self._refuse_again(rejected if several else self._fresh.get(key, ()), wide)
                saved = await self._ask_once(question, key, rejected, run, wide)
        paid = [r.receipt for r in rejected if r.receipt]
        return Answered(question.parse(saved.answer), (*paid, saved.receipt))

    def key(self, prompt: Prompt) -> str:
        """Of a saved answer: stage version, prompt, model and sampling, trace or group."""
        identity = {**self.settings.identity(), "model": self.model.name, "seed": self.seed}
        return content_hash(self.stage_version, prompt.stage, prompt.sha, identity, prompt.item)

    async def _ask_once(
        self, question: Question[T], key: str, rejected: Sequence[Rejection], run: str, wide: bool
    ) -> SavedAnswer:
        attempt, wide = len(rejected) + 1, wide or bool(_cuts(rejected))
        await asyncio.to_thread(self._check_size, question.prompt)
        request = self._request(question.prompt, attempt, wide)

        async def settle(completion: Completion) -> SavedAnswer:
            return await self._settle(question, key, completion, _receipt(request, completion, attempt, run), wide)

        try:
            return await self._patiently(request, run, settle)
        except _Declined as error:
            refused = ModelRefused(str(error))
            await self._reject(key, attempt, refused, None)
            raise refused from error

    async def _settle(
        self, question: Question[T], key: str, completion: Completion, receipt: Receipt, wide: bool
    ) -> SavedAnswer:
        """Read, check and save an answer, or count it as rejected and raise."""
        try:
            answer = read_answer(completion, use_reasoning=self.settings.use_reasoning)
            question.parse(answer)
            receipt = receipt.model_copy(update={"accepted": True})
            saved = SavedAnswer(answer=answer, receipt=receipt)
            return await self._keep(key, saved, _fits(question))
        except (AnswerError, ModelRefused) as error:
            named = self._named(error, final=self._allowed_cuts(wide) == 1)
            await self._reject(key, receipt.attempt, named, receipt)
            raise named from error
        finally:
            # After the answer itself, which a kill must not cost; but whatever it is worth, it is paid for.
            await asyncio.to_thread(self.ledger.paid, receipt)

    async def _keep(self, key: str, saved: SavedAnswer, fits: Callable[[Any], bool]) -> SavedAnswer:
        """Save a paid answer, however long the store is away within reason; then nothing more is bought."""
        for pause in _STORE_PAUSES:
            try:
                return await asyncio.to_thread(self.answers.accept, key, saved, fits)
            except StoreUnavailable:
                await self.sleep(pause)
        try:
            return await asyncio.to_thread(self.answers.accept, key, saved, fits)
        except StoreError as error:
            self._stopped = error
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

    def _named(self, error: AnswerError | ModelRefused, *, final: bool) -> AnswerError | ModelRefused:
        """The same error, saying which model it was."""
        message = f"{self.model.name}: {error}"
        return AnswerTruncated(message, final) if isinstance(error, AnswerTruncated) else type(error)(message)

    async def _reject(self, key: str, attempt: int, error: CombeeError, receipt: Receipt | None) -> None:
        rejection = Rejection(kind=type(error).__name__, reason=str(error), receipt=receipt)
        self._fresh.setdefault(key, []).append(rejection)
        await asyncio.to_thread(self.answers.reject, key, attempt, rejection)

    @cached_property
    def _limit(self) -> int | None:
        """The most input tokens of one call, where it is known."""
        return self.settings.context_tokens or self.model.context_tokens

    def _check_size(self, prompt: Prompt) -> None:
        """Raise `ModelTooLarge` for a prompt beyond the limit. Not on the loop: it may load a model's library."""
        if self._limit is None:
            return
        size = self.model.count(prompt.text)
        if size > self._limit:
            raise ModelTooLarge(
                f"{prompt.item}: about {size} tokens, more than the {self._limit} that {self.model.name} takes"
            )

    def _request(self, prompt: Prompt, attempt: int, wide: bool) -> Request:
        return Request(
            prompt=prompt,
            max_output_tokens=self.settings.max_output_tokens * (2 if wide else 1),
            temperature=self.settings.temperature,
            seed=self.seed + attempt - 1,
            timeout=self.settings.timeout,
        )

    async def _patiently(
        self, request: Request, run: str, settle: Callable[[Completion], Awaitable[SavedAnswer]]
    ) -> SavedAnswer:
        """One call, waiting out 429 and 529 within the budget, without a slot while it waits.

        The slot is held until the answer is settled: one that is not saved yet is a call in flight.
        """
        waits, waited = 0, 0.0
        while True:
            async with self._slots:
                try:
                    completion = await self._send(request, run)
                except ModelBusy as busy:
                    pause = self._pause(busy.retry_after, waits)
                    waits, waited = waits + 1, waited + pause
                    if waits > self.settings.max_waits or waited > self.settings.wait_budget:
                        # Asked to wait for longer than we may, another try at once would be an offence.
                        busy.retryable = waited <= self.settings.wait_budget
                        raise
                else:
                    return await settle(completion)
            await self.sleep(pause)

    def _pause(self, retry_after: float | None, waits: int) -> float:
        """Seconds: what the provider asked for and a little more, else a doubling time with jitter."""
        if retry_after is not None and retry_after >= 0:
            return retry_after + self.rng.uniform(0, _JITTER)
        return min(_LONGEST_PAUSE, 2.0**waits) * self.rng.uniform(0.5, 1.5)

    async def _send(self, request: Request, run: str) -> Completion:
        if self._stopped is not None:
            # A copy: one exception raised from many tasks would collect all their tracebacks.
            raise type(self._stopped)(*self._stopped.args)
        self.ledger.asked(run, request.prompt.stage)
        try:
            return await self.model.complete(request)
        except ModelRefused as error:
            raise _Declined(str(error)) from error
        except ModelUnusable as error:
            self._stopped = error
            raise


class _Declined(ModelRefused):
    """The provider refused the request itself: there is no answer, and nothing was paid."""


def _fits(question: Question[Any]) -> Callable[[Any], bool]:
    """Whether an answer can be used today: one saved by other code may not be, and then counts as absent."""

    def fits(answer: Any) -> bool:
        try:
            question.parse(answer)
        except AnswerError:
            return False
        return True

    return fits


def _cuts(rejected: Sequence[Rejection]) -> list[Rejection]:
    return [r for r in rejected if r.kind == AnswerTruncated.__name__]


def _receipt(request: Request, completion: Completion, attempt: int, run: str) -> Receipt:
    return Receipt(
        stage=request.prompt.stage,
        item=request.prompt.item,
        prompt_sha=request.prompt.sha,
        attempt=attempt,
        accepted=False,
        model=completion.model,
        usage=completion.usage,
        run=run,
    )
