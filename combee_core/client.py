"""The model client: one a process and configuration. What is saved is never bought again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from combee_core.answers import read_answer
from combee_core.base import content_hash
from combee_core.calls import Completion, Prompt, Receipt, Request
from combee_core.candidates import Candidate, Candidates
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerError,
    BudgetSpent,
    CombeeError,
    ModelTooLarge,
    RunStopped,
    StoreError,
    StoreUnavailable,
)
from combee_core.hedging import Unfit
from combee_core.ledger import Ledger
from combee_core.ports import LanguageModel, Question
from combee_core.purse import Limits, Purse
from combee_core.rejecting import allowed_cuts, cuts, named, refuse_again
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


@dataclass(frozen=True)
class _Buying(Generic[T]):
    question: Question[T]
    run: str
    wide: bool
    several: bool


@dataclass(frozen=True)
class _Asked:
    """A model that may be asked, the key of its answer, and its answers that were rejected so far."""

    candidate: Candidate
    key: str
    rejected: list[Rejection]


@dataclass
class Client:
    """Asks questions of a model for one learner version, on one event loop.

    `stage_version` is the learner's fingerprint. `sleep`, `clock` and `rng` are arguments so that tests need no clock.
    The greatest number of requests for one prompt is (retries + 1) × (waits + 1) for each model that may be asked,
    where the retries are the caller's, and twice that where slow calls are sent once more: this client waits out 429
    and 529, sends a slow call a second time, and repeats nothing else. A model that cannot be used, or has failed as
    often as there are attempts, is followed by the next one that `settings` name, made by `build`. `limits` are kept
    by a purse. Call `settle` at the end of a run.
    """

    model: LanguageModel
    answers: SavedAnswers
    settings: ModelSettings
    stage_version: str
    seed: int = 0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    rng: random.Random = field(default_factory=random.Random)
    limits: Limits = field(default_factory=Limits)
    build: Callable[[ModelSettings], LanguageModel] | None = None
    now: Callable[[], datetime] | None = None
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.answers.store)
        self.purse = Purse(self.answers.store, self.limits, self.clock, self.now)
        self.candidates = Candidates(self.settings, self._candidate)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._fresh: dict[str, list[Rejection]] = {}

    def _candidate(self, settings: ModelSettings) -> Candidate:
        is_first = (settings.model, settings.api_base) == (self.settings.model, self.settings.api_base)
        model = self.model if is_first or self.build is None else self.build(settings)
        sender = Sender(model, settings, self.ledger, self.sleep, self.clock, self.rng, self.purse)
        return Candidate(settings, model, sender)

    def begin(self, run: str, invocation: str = "") -> None:
        """Start an invocation of `run`: its counters stand at zero, and a stop of an earlier one is over.

        Nothing changes if `invocation`, the name that several processes share, has begun here already.
        """
        if self.ledger.begin(run, invocation):
            self.purse.begin(run, invocation)
            self.candidates.begin()
            self._fresh.clear()

    def stop(self, reason: str) -> None:
        """Refuse with `RunStopped` every call that is not sent yet; calls in flight finish and are saved."""
        self.candidates.halt(RunStopped(reason))
        self.candidates.flush()

    async def settle(self) -> None:
        """End a run: nothing is waited for, what lost a race is ended and booked, and the ledger is written."""
        await self.candidates.settle()
        await asyncio.to_thread(self.candidates.flush)

    async def aclose(self) -> None:
        """Stop, settle, and close the model's connections; for the end of the process, when there may be no threads."""
        self.candidates.halt(RunStopped("the client is closed: this process makes no more calls with it"))
        await self.candidates.settle()
        self.candidates.flush()
        await self.candidates.aclose()

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
            found, asked = await asyncio.to_thread(self._look, question)
            if found is None:
                found = await self._buy(_Buying(question, run, wide, several), asked)
        paid = [r.receipt for one in asked for r in one.rejected if r.receipt]
        return Answered(found.value, (*paid, found.saved.receipt))

    def key(self, prompt: Prompt, candidate: Candidate | None = None) -> str:
        """Of a saved answer: stage version, prompt, model and sampling, trace or group."""
        identity = {**(candidate or self.candidates.first).identity, "seed": self.seed}
        return content_hash(self.stage_version, prompt.stage, prompt.sha, identity, prompt.item)

    def _look(self, question: Question[T]) -> tuple[_Found[T] | None, list[_Asked]]:
        """What the store has of any model; where it has no answer, the prompt is fit to be sent. Blocks."""
        asked: list[_Asked] = []
        for candidate in self.candidates.at(question.prompt.stage):
            values: list[T] = []
            key = self.key(question.prompt, candidate)
            saved, rejected = self.answers.find(key, _fits(question, values))
            asked.append(_Asked(candidate, key, rejected))
            if saved:
                return _Found(saved, values[-1]), asked
        self._check_size(question.prompt)
        return None, asked

    async def _buy(self, buying: _Buying[T], asked: Sequence[_Asked]) -> _Found[T]:
        """The answer of the first model that gives one."""
        *first, last = asked
        for one in first:
            if not one.candidate.is_done_with(one.key):
                try:
                    return await self._attempt(buying, one)
                except CombeeError as error:
                    if not one.candidate.failed(one.key, error):
                        raise
        try:
            return await self._attempt(buying, last)
        except CombeeError as error:
            was_out = last.candidate.is_out
            last.candidate.failed(last.key, error)
            if not was_out:
                # It may have been the one failure too many.
                last.candidate.sender.gate.stop.check()
            raise

    async def _attempt(self, buying: _Buying[T], one: _Asked) -> _Found[T]:
        refuse_again(
            one.rejected if buying.several else self._fresh.get(one.key, ()), allowed_cuts(self.settings, buying.wide)
        )
        try:
            found = await self._call(buying, one)
        except BudgetSpent as spent:
            self.candidates.halt(spent)
            raise
        self._fresh.pop(one.key, None)
        one.candidate.answered(one.key)
        return found

    async def _call(self, buying: _Buying[T], one: _Asked) -> _Found[T]:
        question, key = buying.question, one.key
        attempt, wide = len(one.rejected) + 1, buying.wide or bool(cuts(one.rejected))

        def read(completion: Completion, receipt: Receipt) -> _Found[T]:
            answer = read_answer(completion, use_reasoning=self.settings.use_reasoning)
            return _Found(SavedAnswer(answer=answer, receipt=receipt), question.parse(answer))

        async def keep(found: _Found[T]) -> _Found[T]:
            values: list[T] = []
            first = await self._save(key, found.saved, _fits(question, values))
            return found if first is found.saved else _Found(first, values[-1])

        request = self._request(question.prompt, attempt, wide)
        try:
            return await one.candidate.sender.answer(Call(request, buying.run, attempt, read, keep))
        except Unfit as unfit:
            final = allowed_cuts(self.settings, wide) == 1
            error = named(unfit, one.candidate.model.name, path_of(key, attempt), final=final)
            kind, excerpt = type(error).__name__, unfit.error.excerpt
            rejection = Rejection(kind=kind, reason=str(error), excerpt=excerpt, receipt=unfit.receipt)
            await self._reject(one, rejection)
            raise error from unfit.error

    async def _save(self, key: str, saved: SavedAnswer, fits: Callable[[Any], bool]) -> SavedAnswer:
        """Save a paid answer, however long the store is away within reason. Where it cannot, nothing more is bought."""
        try:
            for pause in _STORE_PAUSES:
                with suppress(StoreUnavailable):
                    return await asyncio.to_thread(self.answers.accept, key, saved, fits)
                await self.sleep(pause)
            return await asyncio.to_thread(self.answers.accept, key, saved, fits)
        except StoreError as error:
            self.candidates.halt(error)
            raise

    async def _reject(self, one: _Asked, rejection: Rejection) -> None:
        self._fresh.setdefault(one.key, []).append(rejection)
        one.rejected.append(rejection)
        await asyncio.to_thread(self.answers.reject, one.key, len(one.rejected), rejection)

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
