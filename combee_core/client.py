"""The model client: one a process and configuration. Saved answers, waits, limits and the ledger live here, once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from combee_core.answers import read_answer
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerError,
    AnswerTruncated,
    ModelBusy,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
    RunStopped,
)
from combee_core.ledger import Ledger
from combee_core.ports import LanguageModel, Question
from combee_core.saving import Rejection, SavedAnswer, SavedAnswers
from combee_core.types import Completion, Prompt, Receipt, Request, estimate, sha256

T = TypeVar("T")

_TRUNCATED = "AnswerTruncated"
_REFUSED = "ModelRefused"


@dataclass(frozen=True)
class Answered(Generic[T]):
    """A parsed answer and the receipts of all calls that it took, rejected ones included."""

    value: T
    receipts: tuple[Receipt, ...]


@dataclass
class Client:
    """Asks questions of a model for one learner version.

    `sleep` and `rng` are arguments so that tests need no clock. `stage_version` is the learner's fingerprint.
    """

    model: LanguageModel
    answers: SavedAnswers
    settings: ModelSettings
    stage_version: str
    seed: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        self._stop: Exception | None = None

    def stop(self, reason: str) -> None:
        """Refuse every new call; calls in flight finish and are saved."""
        self._stop = RunStopped(reason)

    async def ask(self, question: Question[T], run: str) -> Answered[T]:
        """The parsed answer, from the store if it was ever accepted, else from one call.

        Raises the leaves of `ModelError` and `AnswerError`. A rejected answer is counted in the store and raised: the
        caller's retry asks with the next attempt. Truncation gets one retry with twice the budget, then is `final`.
        """
        key = self.key(question.prompt)
        saved = await asyncio.to_thread(self.answers.accepted, key)
        rejected = await asyncio.to_thread(self.answers.rejections, key)
        paid = tuple(r.receipt for r in rejected if r.receipt.attempt)
        if saved is None:
            _refuse_again(rejected)
            saved = await self._ask_once(question, key, rejected, run)
        return Answered(question.parse(saved.answer), (*paid, saved.receipt))

    def key(self, prompt: Prompt) -> str:
        """Of a saved answer: stage version, prompt, model and sampling, trace or group."""
        identity = {**self.settings.identity(), "model": self.model.name, "seed": self.seed}
        return sha256(self.stage_version, prompt.stage, prompt.sha, identity, prompt.item)

    async def _ask_once(
        self, question: Question[T], key: str, rejected: list[Rejection], run: str
    ) -> SavedAnswer:
        attempt = len(rejected) + 1
        cut_before = any(r.kind == _TRUNCATED for r in rejected)
        request = self._request(question.prompt, attempt, widen=cut_before)
        completion = await self._complete(request, run)
        receipt = _receipt(request, completion, attempt, run)
        try:
            answer = read_answer(completion, use_reasoning=self.settings.use_reasoning)
            question.parse(answer)
        except (AnswerError, ModelRefused) as error:
            self.ledger.paid(receipt)
            rejection = Rejection(kind=type(error).__name__, reason=str(error), receipt=receipt)
            await asyncio.to_thread(self.answers.reject, key, attempt, rejection)
            if isinstance(error, AnswerTruncated) and cut_before:
                raise AnswerTruncated(f"{error} (also with {request.max_output_tokens} tokens)", True) from error
            raise
        accepted = receipt.model_copy(update={"accepted": True})
        self.ledger.paid(accepted)
        return await asyncio.to_thread(self.answers.accept, key, SavedAnswer(answer=answer, receipt=accepted))

    def _request(self, prompt: Prompt, attempt: int, *, widen: bool) -> Request:
        most = self.settings.context_tokens or self.model.context_tokens
        if most is not None and estimate(prompt.text) > most:
            size = estimate(prompt.text)
            raise ModelTooLarge(f"{prompt.item}: about {size} tokens, more than the {most} that {self.model.name} takes")
        return Request(
            prompt=prompt,
            max_output_tokens=self.settings.max_output_tokens * (2 if widen else 1),
            temperature=self.settings.temperature,
            seed=self.seed + attempt - 1,
            timeout=self.settings.timeout,
        )

    async def _complete(self, request: Request, run: str) -> Completion:
        """One completion, waiting out 429 and 529 within the budget."""
        waited = 0.0
        for wait in range(self.settings.max_waits + 1):
            try:
                return await self._send(request, run)
            except ModelBusy as busy:
                pause = self._pause(busy, wait)
                waited += pause
                if wait == self.settings.max_waits or waited > self.settings.wait_budget:
                    raise
            await self.sleep(pause)
        raise AssertionError("unreachable")  # pragma: no cover

    def _pause(self, busy: ModelBusy, wait: int) -> float:
        if busy.retry_after is not None:
            return busy.retry_after + self.rng.uniform(0, 0.25)
        return float(min(60.0, 2.0**wait) * self.rng.uniform(0.5, 1.5))

    async def _send(self, request: Request, run: str) -> Completion:
        async with self._slots:
            if self._stop is not None:
                raise self._stop
            self.ledger.asked(run, request.prompt.stage)
            try:
                return await self.model.complete(request)
            except ModelUnusable as error:
                self._stop = error
                raise


def _refuse_again(rejected: list[Rejection]) -> None:
    """A refusal, and a second truncation, stay what they were: asking again would be paid for nothing."""
    refusal = next((r for r in rejected if r.kind == _REFUSED), None)
    if refusal:
        raise ModelRefused(refusal.reason)
    cuts = [r for r in rejected if r.kind == _TRUNCATED]
    if len(cuts) > 1:
        raise AnswerTruncated(cuts[-1].reason, True)


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
