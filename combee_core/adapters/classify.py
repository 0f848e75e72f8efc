"""Provider faults sorted by what can be done about them: wait, ask again, split, skip or stop.

Sorting is by status and wording, never by the exception's class alone: one client library calls a 413 a rate
limit, a 529 a server error and a refused port an internal error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

from combee_core.base import clip
from combee_core.echo import without_echo
from combee_core.errors import (
    CombeeError,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelRefused,
    ModelTimeout,
    ModelTooLarge,
    ModelUnusable,
)


@dataclass(frozen=True)
class Fault:
    """A failed call as seen on the wire.

    `status` is None where no answer came, `body` the text that came, `names` the classes of the exception and
    its causes, outermost first, `waited` the time-out that was set, in seconds, `asked` the prompt.
    """

    status: int | None = None
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    waited: float | None = None
    asked: str = ""


@dataclass(frozen=True)
class Callee:
    """Who was called, for the messages: model string, address, and the variables that hold its key."""

    model: str
    address: str = "the provider"
    variable: str = "the provider's key"


def _wording(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_FILTERED = _wording(
    r"content[_ ]policy", r"content[_ ]filter", r"content management policy", r"ResponsibleAIPolicy",
    r"safety (?:system|settings|policy)", r"moderation",
)  # fmt: skip
_OVERFLOW = _wording(
    r"context_length_exceeded", r"exceed_context_size", r"ContextWindowExceeded",
    r"maximum context (?:length|window)", r"prompt is too long", r"too large for model", r"request_too_large",
    r"exceed\w*[^.]{0,60}\bcontext\b", r"\bcontext (?:length|window|size)[^.]{0,60}exceed",
    r"\binput[^.]{0,40}(?:is )?too long", r"input (?:token count|tokens|length)[^.]{0,60}exceed",
    r"reduce the length of the (?:messages|prompt|input)",
)  # fmt: skip
_REQUEST_TOO_LARGE = _wording(r"request (?:entity )?too large", r"request_too_large")
_NO_QUOTA = _wording(r"insufficient_quota", r"billing_hard_limit", r"billing_not_active", r"credit balance")
_MAYBE_NO_QUOTA = _wording(r"exceeded your current quota", r"\bbilling\b")
_OVERLOADED = _wording(r"overloaded")
_NO_KEY = _wording(r"missing credentials", r"missing \w+ api key", r"api_key client option must be set")
_OUTPUT_LIMIT = _wording(r"(?:max_tokens or )?model output limit was reached")
_RETRY_IN = re.compile(
    r"(?:try again|retry) in (?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|s)\b"
    r"|retryDelay\W+(?P<delay>\d+(?:\.\d+)?)s",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"(?i),? *(?:(?:original|raw) response|received):.*", re.DOTALL)
_SECRET = re.compile(r"(?i)\b(?:sk|gsk|xai|pk|key)-[\w-]{8,}|(?<=bearer )\S{8,}")

_LOST_TIME = ("Timeout", "TimeoutError", "APITimeoutError", "ReadTimeout", "ConnectTimeout", "PoolTimeout")
_NO_LISTENER = ("ConnectionRefusedError", "ConnectError", "ClientConnectorError", "ClientConnectorDNSError")
_DROPPED = (
    "ReadError", "RemoteProtocolError", "ClientPayloadError", "ServerDisconnectedError", "ClientOSError",
    "ConnectionResetError", "IncompleteRead",
)  # fmt: skip
_PASSING = (408, 409, 425)


def classify(fault: Fault, callee: Callee, now: datetime) -> ModelError:
    """The error leaf for a fault, with its real class, status and words in the message. `now` reads dates."""
    unreached = _unreached(fault, callee)
    if unreached:
        leaf = ModelTimeout if _is_timeout(fault) else ModelFault
        return leaf(f"{callee.model}: {unreached} ({_told(fault)})")
    if _is_refused(fault):
        return ModelRefused(f"{callee.model}: the provider will not answer this ({_told(fault)})")
    if _is_too_large(fault):
        return ModelTooLarge(f"{callee.model}: the request is too large for it ({_told(fault)})")
    wait = retry_after(fault, now)
    if _is_busy(fault, wait):
        return ModelBusy(f"{callee.model}: busy ({_told(fault)})", wait)
    stop = _why_stop(fault, callee)
    if stop:
        return ModelUnusable(f"{callee.model}: {stop} ({_told(fault)})")
    return ModelFault(f"{callee.model}: a fault at {callee.address} ({_told(fault)})")


def is_unreached(fault: Fault) -> bool:
    """True if nothing listens at the address, or nothing came from it in time."""
    return _any(fault, _NO_LISTENER) or _any(fault, _LOST_TIME)


def _is_timeout(fault: Fault) -> bool:
    return _any(fault, _LOST_TIME) and not _any(fault, (*_NO_LISTENER, "gaierror"))


def is_output_limit(fault: Fault) -> bool:
    """True if a reasoning model spent its whole output budget and the provider calls that a bad request."""
    return fault.status == 400 and bool(_OUTPUT_LIMIT.search(fault.body))


def refused_parameters(fault: Fault, sent: Mapping[str, Any]) -> set[str]:
    """Which of the parameters sent the server refuses by name, and that the call can do without."""
    if fault.status not in (400, 422):
        return set()
    body = fault.body.replace("\\", "")
    refused = {name for name in ("temperature", "seed") if re.search(rf"[\"'`]{name}[\"'`]", body)}
    if re.search(r"response.?format|json.?schema|structured output|\bgrammar\b", body, re.IGNORECASE):
        refused.add("response_format")
    return refused & set(sent)


def retry_after(fault: Fault, now: datetime) -> float | None:
    """Seconds that the provider asks to wait, None where it does not say."""
    headers = {name.lower(): value for name, value in fault.headers.items()}
    in_milliseconds = _number(headers.get("retry-after-ms", ""))
    if in_milliseconds is not None:
        return in_milliseconds / 1000
    given = headers.get("retry-after", "")
    seconds = _number(given)
    if seconds is None:
        seconds = _until(given, now)
    return _wait_in(fault.body) if seconds is None else seconds


def fault_of(error: BaseException) -> Fault:
    """The fault behind an exception of any client library.

    The exception nearest to the caller may hold a made-up status; the HTTP error below it holds the real one.
    """
    chain = list(_causes(error))
    wire = next((one for one in chain if type(one).__name__.endswith("HTTPStatusError")), None)
    response = getattr(wire or error, "response", None)
    status = getattr(response if wire else error, "status_code", None)
    body = _text_of(response)
    return Fault(
        status=status if isinstance(status, int) else None,
        body=f"{body}\n{error}" if body else str(error),
        headers=_headers_of(error, response),
        names=tuple(type(one).__name__ for one in chain),
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it came from, down to an error of our own: that was an earlier call's."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen and not isinstance(following, CombeeError):
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def _text_of(response: Any) -> str:
    # A body that was never read raises an error of the HTTP library's own.
    with suppress(Exception):
        return str(response.text)
    return ""


def _headers_of(error: BaseException, response: Any) -> dict[str, str]:
    for headers in (getattr(response, "headers", None), getattr(error, "litellm_response_headers", None)):
        if headers:
            return {str(name): str(value) for name, value in headers.items()}
    return {}


def _any(fault: Fault, names: tuple[str, ...]) -> bool:
    return any(name in names for name in fault.names)


def _unreached(fault: Fault, callee: Callee) -> str:
    if _any(fault, ("ClientConnectorDNSError", "gaierror")):
        return f"the host name of {callee.address} is not known"
    if _any(fault, _NO_LISTENER):
        return f"nothing listens at {callee.address}; is the server running?"
    if _is_timeout(fault):
        limit = f"within {fault.waited:g} s" if fault.waited is not None else "in time"
        return f"time-out: no whole answer from {callee.address} {limit}"
    return f"{callee.address} dropped the connection in mid-answer" if _any(fault, _DROPPED) else ""


def _is_refused(fault: Fault) -> bool:
    if _any(fault, ("ContentPolicyViolationError",)):
        return True
    return fault.status in (400, 403, 422, 451) and bool(_FILTERED.search(fault.body))


def _is_too_large(fault: Fault) -> bool:
    if fault.status == 413 or _any(fault, ("ContextWindowExceededError",)):
        return True
    if fault.status == 429:
        return bool(_REQUEST_TOO_LARGE.search(fault.body))
    return fault.status in (None, 400, 422, 500) and bool(_OVERFLOW.search(fault.body))


def _is_busy(fault: Fault, wait: float | None) -> bool:
    if fault.status == 429:
        out_of_quota = wait is None and _MAYBE_NO_QUOTA.search(fault.body)
        return not (_NO_QUOTA.search(fault.body) or out_of_quota)
    if fault.status == 503 and wait is not None:
        return True
    server_side = fault.status is None or fault.status >= 500
    return fault.status == 529 or (server_side and bool(_OVERLOADED.search(fault.body)))


def _why_stop(fault: Fault, callee: Callee) -> str:
    if fault.status in (401, 403) or _NO_KEY.search(fault.body):
        return f"the key was refused or is missing; set {callee.variable}"
    if fault.status in (402, 429):
        return "no quota left; see the provider's billing page"
    if fault.status == 404:
        return f"no such model or path at {callee.address}; check the name"
    if fault.status is not None and 400 <= fault.status < 500 and fault.status not in _PASSING:
        return "the provider calls the request wrong"
    return ""


def _told(fault: Fault) -> str:
    """Class, status and words of the provider in one line, without keys and what it quotes of prompt or answer."""
    said = clip(_ANSWER.sub(": …", _SECRET.sub("…", _message(fault.body))), 1000)
    words = without_echo(said, fault.asked)
    parts = (fault.names[0] if fault.names else "", _shown(fault.status), clip(words, 300))
    return " ".join(filter(None, parts))


def _shown(status: int | None) -> str:
    return f"{status}:" if status is not None else ""


def _message(body: str) -> str:
    """The message of an error object, in whichever of the usual shapes; else the text as it is."""
    with suppress(ValueError):
        record = json.JSONDecoder().raw_decode(body)[0]
        inner = record.get("error", record) if isinstance(record, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(message, str) and message:
            return message
    return body


def _number(text: str) -> float | None:
    with suppress(ValueError):
        number = float(text)
        return max(number, 0.0) if isfinite(number) else None
    return None


def _until(date: str, now: datetime) -> float | None:
    with suppress(ValueError, OverflowError):
        when = parsedate_to_datetime(date)
        return max(((when if when.tzinfo else when.replace(tzinfo=UTC)) - now).total_seconds(), 0.0)
    return None


def _wait_in(body: str) -> float | None:
    found = _RETRY_IN.search(body)
    if not found:
        return None
    if found["delay"]:
        return float(found["delay"])
    return float(found["number"]) / (1000 if found["unit"].lower() == "ms" else 1)
