"""What goes to litellm and what comes back: pure translation between its shapes and our nouns."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from combee_core.adapters.classify import Callee
from combee_core.adapters.load_litellm import model_info
from combee_core.base import is_simulated, whole
from combee_core.calls import Completion, Message, Prices, Prompt, Request, Usage
from combee_core.errors import ModelUnusable

_MARKED = frozenset({"anthropic", "bedrock", "vertex_ai"})
"""Providers of models that cache only what is marked."""


@dataclass(frozen=True)
class Route:
    """Where a model string leads, found out once: litellm's provider, the name that the server knows."""

    provider: str
    served: str
    callee: Callee
    key: str | None
    answers_in: Literal["schema", "object", "text"]
    lists_models: bool
    marks_prefix: bool = False


def route_of(litellm: Any, model: str, api_base: str | None) -> Route:
    """Where a model string leads; raises `ModelUnusable` for one that litellm cannot place."""
    try:
        served, provider, _, _ = litellm.get_llm_provider(model, api_base=api_base)
    except Exception as error:
        raise ModelUnusable(f"{model}: {_why_unplaced(str(error), model, api_base)}") from error
    missing = litellm.validate_environment(model)["missing_keys"]
    compatible = provider == "openai" or provider in litellm.openai_compatible_providers
    return Route(
        provider=provider,
        served=served,
        callee=Callee(model, public_address(api_base) if api_base else provider, _variable(missing, provider)),
        key="none" if api_base and missing else None,
        answers_in=_answer_form(litellm, model, provider, api_base),
        lists_models=bool(api_base) and compatible,
        marks_prefix=provider in _MARKED and "claude" in model and _caches(litellm, model),
    )


def _caches(litellm: Any, model: str) -> bool:
    return bool((model_info(litellm, model) or {}).get("supports_prompt_caching"))


def _why_unplaced(words: str, model: str, api_base: str | None) -> str:
    if "LLM Provider NOT provided" not in words:
        return f"litellm cannot place it ({words.splitlines()[0][:300] if words else 'no reason given'})"
    example = f"openai/{model}" if api_base else "openai/gpt-4o"
    return f"litellm knows no such model; write provider/name, for example {example}"


def _variable(missing: Sequence[str], provider: str) -> str:
    """Where the key is read from. litellm names the variables that are not set, not the ones that are."""
    usual = [f"{provider.upper()}_API_KEY", f"{provider.upper().replace('_', '')}_API_KEY"]
    return ", ".join(missing) or next((name for name in usual if name in os.environ), usual[0])


def _answer_form(litellm: Any, model: str, provider: str, api_base: str | None) -> Literal["schema", "object", "text"]:
    if litellm.supports_response_schema(model=model):
        return "schema"
    if "response_format" not in (litellm.get_supported_openai_params(model=model) or ()):
        return "text"
    # A server of one's own under a name of one's own can mostly do it, and says so if it cannot.
    return "schema" if api_base and model_info(litellm, model) is None else "object"


def optional_parameters(route: Route, request: Request, left_out: Collection[str]) -> dict[str, Any]:
    """The parameters that a call can do without."""
    optional = {
        "temperature": request.temperature,
        "seed": request.seed % 2**31,  # some servers read 32 bits
        "response_format": _response_format(route, request.prompt),
    }
    return {name: value for name, value in optional.items() if value is not None and name not in left_out}


def _response_format(route: Route, prompt: Prompt) -> dict[str, Any] | None:
    if not prompt.answer_schema or route.answers_in == "text":
        return None
    if route.answers_in == "object":
        return {"type": "json_object"}
    name = re.sub(r"[^\w-]", "_", prompt.stage, flags=re.ASCII) or "answer"
    schema = {"name": name, "strict": True, "schema": prompt.answer_schema}
    return {"type": "json_schema", "json_schema": schema}


def as_sent(message: Message, route: Route | None = None) -> dict[str, Any]:
    """A message as it is sent; halves of characters, which UTF-8 does not have, are joined or replaced.

    Most providers find a prefix that they have read before by themselves; Claude's is told where it ends.
    """
    text = whole(message.content)
    if route and route.marks_prefix and message.role == "system":
        return {"role": "system", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}
    return {"role": message.role, "content": text}


def completion_of(response: Any, model: str) -> Completion:
    """The first choice of a response, with what it cost."""
    choice = response.choices[0]
    message = choice.message
    return Completion(
        text=getattr(message, "content", None),
        finish=choice.finish_reason or "unknown",
        refusal=getattr(message, "refusal", None),
        reasoning=getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None),
        usage=_usage(response),
        model=response.model or model,
    )


def _usage(response: Any) -> Usage:
    """Tokens and cost; where a server reports nothing litellm has zeros, and that is unknown, not free."""
    usage = getattr(response, "usage", None)
    read, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if not read and not written:
        return Usage()
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=getattr(details, "cached_tokens", None),
        cost=_cost(response),
    )


def _cost(response: Any) -> float | None:
    if is_simulated(response.model or ""):
        return 0.0
    found = getattr(response, "_hidden_params", {}).get("response_cost")  # litellm's documented place for it
    return float(found) if found else None


def prices_in(info: Mapping[str, Any]) -> Prices | None:
    """Prices in litellm's row on a model; a row without any, or with zeros, does not know them."""
    read, written = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if not read and not written:
        return None
    return Prices(input=read or 0.0, output=written or 0.0, cached=info.get("cache_read_input_token_cost"))


def names_in(response: Any) -> list[str]:
    """The ids in a list of models; none in a body of another shape."""
    try:
        return [str(row["id"]) for row in response.json()["data"]]
    except (ValueError, TypeError, KeyError):
        return []


def public_address(address: str | None) -> str:
    """An address without the user and password that it may hold."""
    parts = urlsplit(address or "")
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
