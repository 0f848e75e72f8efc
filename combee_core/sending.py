"""How a call is made: with a slot, patiently with a busy provider, twice where it is slow; all of it is booked."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from combee_core.calls import Completion, Receipt, Request, Usage
from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerError,
    ModelAway,
    ModelBusy,
    ModelError,
    ModelFailing,
    ModelRefused,
    ModelTimeout,
    ModelUnusable,
    StoreError,
)
from combee_core.events import event
from combee_core.hedging import Overtaken, Patience, Try, Unfit, first_good
from combee_core.ledger import Ledger
from combee_core.limits import Gate
from combee_core.liveness import Liveness
from combee_core.ports import LanguageModel
from combee_core.purse import Hold, Purse
from combee_core.reserving import away_until, most, priced, taken
from combee_core.spent import NOTHING, Spent

V = TypeVar("V")

LAG = 1.0
"""Seconds that receipts wait for others before they are written."""

_JITTER = 0.25
_LONGEST_PAUSE = 60.0
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Call(Generic[V]):
    """A call to be made: `read` makes an answer and its receipt a value or raises why not, `keep` saves the value and
    gives what stands."""

    request: Request
    run: str
    attempt: int
    read: Callable[[Completion, Receipt], V]
    keep: Callable[[V], Awaitable[V]]
    is_answered: bool = False
    is_given_up: bool = False

    def receipt(self, one: Try, model: str, usage: Usage, *, accepted: bool) -> Receipt:
        """Of one request for it."""
        prompt = self.request.prompt
        return Receipt(
            stage=prompt.stage,
            item=prompt.item,
            prompt_sha=prompt.sha,
            attempt=self.attempt,
            accepted=accepted,
            model=model,
            usage=usage,
            run=self.run,
            hedge=one.hedge,
        )


@dataclass
class Sender:
    """Makes calls, each with at most 2 × (waits + 1) requests: each of two tries waits out 429 and 529 by itself."""

    model: LanguageModel
    settings: ModelSettings
    ledger: Ledger
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]
    rng: random.Random
    purse: Purse
    _late: set[asyncio.Task[Any]] = field(default_factory=set)
    _writing: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.gate = Gate(self.settings, self.clock, self.sleep)
        self._prices = self.settings.prices
        self.patience = Patience(self.settings.hedge, self.clock)
        self.liveness = Liveness(self.model.name, self.model.preflight, self.clock)

    async def answer(self, call: Call[V]) -> V:
        """The first good answer, saved. Raises `Unfit` where the answer cannot be used, else a leaf of `ModelError`."""
        stage = call.request.prompt.stage
        if not self.settings.hedge:
            return await self._try(call, Try(stage))
        return await first_good(lambda one: self._try(call, one), stage, self.patience, self._late)

    async def settle(self) -> None:
        """End what lost its race and is still under way; it is booked as paid, at a price that nobody knows."""
        late = list(self._late)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def flush(self) -> None:
        """Write the ledger and what is spent; while the store is away both are kept in memory for the next time."""
        try:
            self.ledger.flush()
            self.purse.flush()
        except StoreError as error:
            event(_log, logging.WARNING, "receipts-unwritten", f"receipts are not written yet: {error}")

    async def _try(self, call: Call[V], one: Try) -> V:
        """One request, waiting out 429 and 529 within the budget, without a slot while it waits.

        The slot is held until the answer is saved: one that is not saved yet is a call in flight.
        """
        waits, waited, most = 0, 0.0, await self._most(call.request)
        while True:
            async with (
                self.purse.hold(call.run, most, self.gate.stop) as hold,
                self.gate.turn(call.request) as turn,
            ):
                if call.is_answered or (one.hedge and call.is_given_up):
                    raise Overtaken
                self.purse.send(hold)
                one.sent = turn.sent
                try:
                    completion = await self._send(call, one, hold)
                except ModelBusy as busy:
                    hold.paid = NOTHING
                    self.gate.busy(turn)
                    pause = self._pause(busy.retry_after, waits)
                    waits, waited = waits + 1, waited + pause
                    self._check_patience(busy, waits, waited)
                else:
                    self.gate.answered(turn, completion.usage)
                    self.patience.answered(turn.stage, self.clock() - turn.sent)
                    completion = priced(completion, self.settings.prices)
                    hold.paid = taken(call.request, completion, self._prices)
                    return await self._take(call, one, completion)
            one.sent = None
            await self.gate.stop.wait(self.sleep(pause))

    def _check_patience(self, busy: ModelBusy, waits: int, waited: float) -> None:
        """Raise where there has been waiting enough; a provider that asks for more than we may is asked no more."""
        if waited > self.settings.wait_budget and busy.retry_after is not None:
            away = ModelAway(away_until(busy, self.purse.now(), self.settings.wait_budget))
            self.gate.stop.set_first(away)
            raise away from busy
        if waits > self.settings.max_waits or waited > self.settings.wait_budget:
            # Asked to wait for longer than we may, another try at once would be an offence.
            busy.retryable = waited <= self.settings.wait_budget
            raise busy

    async def _most(self, request: Request) -> Spent:
        """What a request may take at most; nothing is counted where there is no cap."""
        if not self.purse.is_capped:
            return NOTHING
        if self.purse.counts_money and self._prices is None:
            # The first look may load a library.
            self._prices = self.settings.prices or await asyncio.to_thread(lambda: self.model.prices)
        return most(request, self._prices)

    async def _take(self, call: Call[V], one: Try, completion: Completion) -> V:
        """Read and save an answer. Whatever it is worth, it is paid for."""
        receipt = call.receipt(one, completion.model, completion.usage, accepted=True)
        try:
            value = call.read(completion, receipt)
            if call.is_answered:
                raise Overtaken
            call.is_answered = True
        except BaseException as error:
            receipt = receipt.model_copy(update={"accepted": False})
            self._book(receipt)
            if isinstance(error, AnswerError | ModelRefused):
                raise Unfit(error, receipt) from error
            raise
        try:
            return await call.keep(value)
        finally:
            self._book(receipt)  # after the answer itself, which a kill must not cost

    async def _send(self, call: Call[Any], one: Try, hold: Hold) -> Completion:
        self.ledger.asked(call.run, call.request.prompt.stage)
        self._write_soon()
        try:
            return await self._complete(call, one)
        except asyncio.CancelledError:
            hold.paid = hold.most  # what it would have cost is not known any more
            self.ledger.paid(call.receipt(one, self.settings.model, Usage(), accepted=False))
            raise
        except ModelRefused as error:
            raise Unfit(error, None) from error
        except ModelUnusable as error:
            self.gate.stop.set_first(error)
            raise

    async def _complete(self, call: Call[Any], one: Try) -> Completion:
        try:
            async with self.liveness.call() if self.settings.breaker else nullcontext():
                completion = await self.model.complete(call.request)
        except ModelTimeout:
            # Before the slot is free: the second request must not take it.
            call.is_given_up |= not one.hedge
            raise
        except ModelFailing:
            raise  # nobody has said anything
        except ModelError:
            self.liveness.hear()
            raise
        self.liveness.hear()
        return completion

    def _pause(self, retry_after: float | None, waits: int) -> float:
        """Seconds: what the provider asked for and a little more, else a doubling time with jitter."""
        if retry_after is not None and retry_after >= 0:
            return retry_after + self.rng.uniform(0, _JITTER)
        return min(_LONGEST_PAUSE, 2.0**waits) * self.rng.uniform(0.5, 1.5)

    def _book(self, receipt: Receipt) -> None:
        self.ledger.paid(receipt)
        self._write_soon()

    def _write_soon(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        try:
            await asyncio.sleep(LAG)
        except asyncio.CancelledError:
            self.flush()  # the loop is closing: now or never
            raise
        self._writing = None
        await asyncio.to_thread(self.flush)
