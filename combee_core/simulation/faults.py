"""Faults on demand: which calls go wrong, and how. Draws are hashes: the same calls fail in any order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from combee_core.errors import UsageError
from combee_core.simulation.asked import Asked
from combee_core.simulation.draws import Draws

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "429": "too many requests, with Retry-After (retry_after seconds, 1 unless given)",
        "529": "overloaded",
        "500": "server error",
        "timeout": "no answer until the client leaves",
        "drop": "connection closed in the middle of the answer",
        "truncated": "answer cut at the token limit, finish_reason length",
        "fenced": "answer in a code fence, with a sentence before and after",
        "bare_array": "the operations as a JSON array, without the object round it",
        "reasoning": "a think block with a draft in JSON, then the answer",
        "reasoning_unclosed": "a think block that never ends",
        "refusal": "no content, refusal set",
        "filter": "no content, finish_reason content_filter",
        "empty": "empty content",
        "malformed": "not JSON",
    }
)
KEYS: Mapping[str, str] = MappingProxyType(
    {
        "kind": "what happens (required)",
        "stage": "rollout, reflect, curate or merge",
        "group": "number of a curator's group",
        "contains": "text that the prompt holds",
        "rate": "share of the matching calls, 0 to 1",
        "count": "only the first N of them, 0 for no limit",
        "retry_after": "seconds in the Retry-After header of 429",
    }
)
_ALIASES = {"time_out": "timeout", "dropped": "drop", "cut": "truncated", "unclosed": "reasoning_unclosed"}
_STATUS = re.compile(r"[45]\d\d")
_WHOLE = re.compile(r"\d+")
_DECIMAL = re.compile(r"\d+(?:\.\d+)?|\.\d+")


@dataclass(frozen=True)
class Fault:
    """One kind of fault and the calls that it hits; None or an empty text matches every call."""

    kind: str
    stage: str = ""
    group: int | None = None
    contains: str = ""
    rate: float = 1.0
    count: int = 0
    retry_after: float = 1.0

    def matches(self, call: Asked) -> bool:
        """True if the call is of the fault's stage, group and text."""
        return self.stage in ("", call.stage) and self.group in (None, call.group) and self.contains in call.text


def parse_fault(text: str) -> Fault:
    """Read `stage=curate,group=3,kind=500,rate=0.5,count=2`: any of the keys, `kind` always.

    A kind is one of `KINDS`, dashes being read as underscores, or any HTTP status from 400 on. Raises `UsageError`
    with the known keys or kinds.
    """
    pairs = [part.partition("=") for part in text.split(",")]
    given = {key.strip(): value.strip() for key, _, value in pairs}
    if strange := [key for key in given if key not in KEYS]:
        raise _wrong(text, f"there is no key {strange[0]!r}", "keys", KEYS)
    kind = given.get("kind", "").lower().replace("-", "_")
    kind = _ALIASES.get(kind, kind)
    if kind not in KINDS and not _STATUS.fullmatch(kind):
        raise _wrong(text, f"there is no kind {given.get('kind', '')!r}", "kinds", KINDS)
    rate = _number(text, given, "rate", _DECIMAL, "1")
    if rate > 1:
        raise UsageError(f"fault {text!r}: rate is a share between 0 and 1")
    return Fault(
        kind=kind,
        stage=given.get("stage", ""),
        group=int(_number(text, given, "group", _WHOLE, "0")) if "group" in given else None,
        contains=given.get("contains", ""),
        rate=rate,
        count=int(_number(text, given, "count", _WHOLE, "0")),
        retry_after=_number(text, given, "retry_after", _DECIMAL, "1"),
    )


def _number(text: str, given: Mapping[str, str], key: str, form: re.Pattern[str], default: str) -> float:
    value = given.get(key, default)
    if not form.fullmatch(value):
        raise UsageError(f"fault {text!r}: {key} is a number, not {value!r}")
    return float(value)


def _wrong(text: str, what: str, name: str, known: Mapping[str, str]) -> UsageError:
    listed = "; ".join(f"{key}: {meaning}" for key, meaning in known.items())
    return UsageError(f"fault {text!r}: {what}; the {name} are {listed}")


@dataclass
class Faults:
    """The faults in force, and what has been seen so far."""

    plan: tuple[Fault, ...] = ()
    _seen: Counter[str] = field(default_factory=Counter)
    _fired: Counter[int] = field(default_factory=Counter)

    def replace(self, plan: Sequence[Fault]) -> None:
        """Put other faults in force; their counts start anew."""
        self.plan = tuple(plan)
        self._fired.clear()

    def strike(self, call: Asked, seed: int) -> Fault | None:
        """The first fault that hits this call, or None."""
        self._seen[call.text] += 1
        draws = Draws("fault", seed, call.stage, call.text, self._seen[call.text])
        for at, fault in enumerate(self.plan):
            spent = 0 < fault.count <= self._fired[at]
            if not spent and fault.matches(call) and draws.uniform(at) < fault.rate:
                self._fired[at] += 1
                return fault
        return None
