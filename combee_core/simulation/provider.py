"""A simulated provider: counts and logs each call, waits its latency, and lets faults strike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import exp

from combee_core.errors import UsageError
from combee_core.simulation import chat as shape
from combee_core.simulation.asked import asked
from combee_core.simulation.call_log import CallLog
from combee_core.simulation.chat import Chat, Reply
from combee_core.simulation.draws import Draws
from combee_core.simulation.faults import Fault, Faults

_POLL = 0.05
_OK = 200


@dataclass(frozen=True)
class Ending:
    """How a call ends on the wire: the whole reply, half of it (`dropped`), or none (the client has left)."""

    reply: Reply | None
    dropped: bool = False


@dataclass
class Provider:
    """What one server holds. `latency` is in seconds, times a lognormal draw of `latency_sigma`.

    The draw is fixed by the prompt. With a `latency_seed` it is fixed by that and the call's number: clients that send
    different prompts are then given the same delays.
    """

    log: CallLog
    faults: Faults = field(default_factory=Faults)
    latency: float = 0.0
    latency_sigma: float = 0.0
    latency_seed: int | None = None

    async def answer(self, body: bytes, gone: Callable[[], Awaitable[bool]]) -> Ending:
        """Answer the body of one request; `gone` tells whether the client has left."""
        try:
            chat = shape.read_chat(body)
        except UsageError as error:
            return Ending(shape.error(400, str(error), "invalid_request_error"))
        call = self.log.start(asked(chat.messages))
        fault = self.faults.strike(call.asked, chat.seed)
        status: int | str = "cancelled"
        try:
            ending = await self._end(chat, fault, gone, self.seconds(chat, call.n))
            status = _status(ending)
        finally:
            self.log.end(call, status, fault=fault is not None)
        return ending

    def seconds(self, chat: Chat, number: int) -> float:
        """How long the server takes for its call `number`, which counts from 1."""
        by_prompt = ("latency", chat.seed, [message.content for message in chat.messages])
        draws = Draws(*by_prompt) if self.latency_seed is None else Draws("latency", self.latency_seed, number)
        return self.latency * exp(self.latency_sigma * draws.normal())

    async def _end(
        self, chat: Chat, fault: Fault | None, gone: Callable[[], Awaitable[bool]], seconds: float
    ) -> Ending:
        kind = fault.kind if fault else ""
        if kind == "timeout":
            while not await gone():
                await asyncio.sleep(_POLL)
            return Ending(None)
        reply = shape.reply_to(chat, fault)
        if reply.status == _OK:
            await asyncio.sleep(seconds)
        return Ending(reply, dropped=kind == "drop")


def _status(ending: Ending) -> int | str:
    if ending.reply is None:
        return "timeout"
    return "drop" if ending.dropped else ending.reply.status
