"""A language model of any provider, called through litellm: one request, no retry, no wait."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from combee_core.adapters.classify import (
    classify,
    fault_of,
    is_output_limit,
    is_unreached,
    refused_parameters,
)
from combee_core.adapters.litellm_wire import (
    Route,
    as_sent,
    completion_of,
    names_in,
    optional_parameters,
    prices_in,
    public_address,
    route_of,
)
from combee_core.adapters.load_litellm import load_litellm, model_info
from combee_core.adapters.tokens import count_tokens
from combee_core.base import is_simulated
from combee_core.calls import FREE, Completion, Message, Prices, Prompt, Request
from combee_core.errors import ModelBusy, ModelError, ModelFault, ModelUnusable
from combee_core.events import event

PREFLIGHT_TIMEOUT = 20.0
"""Seconds that a preflight waits for a server."""

_SHOWN_NAMES = 5
_MISSING = frozenset({404, 405, 501})
_HELLO = Message(role="user", content="Say yes.")
_log = logging.getLogger(__name__)


class LitellmModel:
    """Answers requests through litellm; `model` is a litellm string such as `openai/gpt-4o`.

    `api_base` is the address of a server, with its `/v1` where it has one. Keys come from the environment,
    under the names that litellm reads; a server given by address needs none. What the server will not take
    (seed, temperature, answer schema) is left out from then on, with a warning. One object may serve many
    coroutines of one loop; end it with `aclose` before that loop ends.
    """

    def __init__(self, model: str, api_base: str | None = None) -> None:
        self._model = model
        self._api_base = api_base.rstrip("/") if api_base else None
        self._left_out: set[str] = set()
        self._known_route: Route | None = None

    @property
    def name(self) -> str:
        """Model string, and the address if one was given, without credentials."""
        return f"{self._model}@{public_address(self._api_base)}" if self._api_base else self._model

    @property
    def context_tokens(self) -> int | None:
        """The input limit that litellm knows of; the first look loads it. None for a name of one's own."""
        try:
            info = model_info(load_litellm(), self._model) or {}
        except ModelUnusable:
            return None
        return info.get("max_input_tokens")

    @property
    def prices(self) -> Prices | None:
        """What litellm's price list says; the first look loads it. None for a name that it lists no price for."""
        if is_simulated(self._model.partition("/")[2]):
            return FREE
        try:
            return prices_in(model_info(load_litellm(), self._model) or {})
        except ModelUnusable:
            return None

    def count(self, text: str) -> int:
        """Tokens by litellm's counter where it knows the model, else an estimate."""
        return count_tokens(text, self._model)

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises a leaf of `ModelError`. `request.timeout` is in seconds, for the whole answer."""
        litellm = await self._litellm()
        route = self._route(litellm)
        sent, answer = await self._ask(litellm, route, request)
        while isinstance(answer, Exception) and self._leaves_out(refused_parameters(fault_of(answer), sent)):
            sent, answer = await self._ask(litellm, route, request)
        if isinstance(answer, Exception):
            if is_output_limit(fault_of(answer)):
                return Completion(text=None, finish="length", model=self._model)
            raise self._leaf(answer, route, request.timeout, request.prompt.text) from answer
        if not answer.choices:
            raise ModelFault(f"{self._model}: an answer without choices from {route.callee.address}")
        return completion_of(answer, self._model)

    async def preflight(self, timeout: float = PREFLIGHT_TIMEOUT) -> None:
        """Find out in one or two cheap requests if the model can be used; raises `ModelUnusable` if not.

        A busy provider passes. A server error is raised as what it is.
        """
        litellm = await self._litellm()
        route = self._route(litellm)
        names = await self._offered(route, timeout) if route.lists_models else None
        if names is None:
            await self._try_one_token(litellm, route, timeout)
        elif not {route.served, f"{route.served}:latest"} & set(names):
            await self._try_unlisted(litellm, route, names, timeout)

    async def _try_unlisted(self, litellm: Any, route: Route, names: list[str], timeout: float) -> None:
        """Gateways serve names that they do not list, so the name is tried before it is called wrong."""
        try:
            await self._try_one_token(litellm, route, timeout)
        except ModelUnusable as error:
            shown = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
            where = route.callee.address
            raise ModelUnusable(f"{where} offers no model {route.served!r}; it has: {shown} ({error})") from error

    async def aclose(self) -> None:
        """Close litellm's connections and its logging task; all models of the process share them."""
        if self._known_route is None:
            return
        litellm = await self._litellm()
        from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

        # What it has begun must end first: a task that is left over would fail in the next loop.
        await GLOBAL_LOGGING_WORKER.flush()
        await GLOBAL_LOGGING_WORKER.stop()
        await litellm.close_litellm_async_clients()
        # A closed client left in the cache would be used by the next call.
        litellm.in_memory_llm_clients_cache.flush_cache()

    async def _litellm(self) -> Any:
        """Loading it for the first time would hold up the loop for seconds; at exit there are no threads any more."""
        return load_litellm() if self._known_route else await asyncio.to_thread(load_litellm)

    def _route(self, litellm: Any) -> Route:
        if self._known_route is None:
            self._known_route = route_of(litellm, self._model, self._api_base)
        return self._known_route

    async def _ask(self, litellm: Any, route: Route, request: Request) -> tuple[dict[str, Any], Any | Exception]:
        """What was sent and the response, or the exception that came in its place."""
        optional = optional_parameters(route, request, self._left_out)
        try:
            async with asyncio.timeout(request.timeout):
                answer = await litellm.acompletion(
                    model=self._model,
                    messages=[as_sent(message, route) for message in request.prompt.messages],
                    max_tokens=request.max_output_tokens,
                    timeout=request.timeout,
                    api_base=self._api_base,
                    api_key=route.key,
                    num_retries=0,
                    max_retries=0,
                    drop_params=True,
                    **optional,
                )
            return optional, answer
        except Exception as error:  # noqa: BLE001  litellm raises whatever its providers' code raises
            return optional, error

    def _leaves_out(self, refused: set[str]) -> bool:
        for name in sorted(refused - self._left_out):
            text = f"{self.name}: the server refuses {name}; it is left out from now on"
            event(_log, logging.WARNING, "parameter-left-out", text, model=self.name, parameter=name)
        self._left_out |= refused
        return bool(refused)

    def _leaf(self, error: Exception, route: Route, timeout: float, asked: str = "") -> ModelError:
        fault = replace(fault_of(error), waited=timeout, asked=asked)
        return classify(fault, route.callee, datetime.now(UTC))

    async def _offered(self, route: Route, timeout: float) -> list[str] | None:
        """The model names that the server lists; None where it has no list."""
        import httpx

        headers = {"authorization": f"Bearer {route.key or os.environ.get(route.callee.variable, 'none')}"}
        try:
            async with httpx.AsyncClient(timeout=timeout) as client:
                response = await client.get(f"{self._api_base}/models", headers=headers)
            if response.status_code in _MISSING:
                return None
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            leaf = self._leaf(error, route, timeout)
            if isinstance(leaf, ModelBusy):
                return None
            raise leaf from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelUnusable(str(self._leaf(error, route, timeout))) from error
        return names_in(response) or None

    async def _try_one_token(self, litellm: Any, route: Route, timeout: float) -> None:
        prompt = Prompt(stage="preflight", item="", messages=(_HELLO,), answer_schema={})
        request = Request(prompt=prompt, max_output_tokens=1, timeout=timeout)
        try:
            await self.complete(request)
        except ModelBusy:
            return
        except ModelFault as error:
            if error.__cause__ is not None and is_unreached(fault_of(error.__cause__)):
                raise ModelUnusable(str(error)) from error
            raise
