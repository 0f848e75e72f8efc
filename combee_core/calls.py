"""The nouns of a call to a model: what is asked, what comes back, what was paid."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from pydantic import Field

from combee_core.base import Noun, content_hash


class Message(Noun):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Noun):
    """Everything that a model is told in one call, and the JSON schema of the answer.

    The first message is the prefix that calls of one stage share; the last begins with the stage line.
    """

    stage: str
    item: str
    messages: tuple[Message, ...]
    answer_schema: dict[str, Any]

    @property
    def sha(self) -> str:
        """Hash of what the model sees."""
        *shared, last = ((message.role, message.content) for message in self.messages)
        return content_hash([*(_shared_hash(*one) for one in shared), content_hash(*last)], self.answer_schema)

    @property
    def text(self) -> str:
        """All messages as one text, for counting."""
        return "\n\n".join(m.content for m in self.messages)


# A playbook in front of ten thousand prompts is hashed once.
_shared_hash = lru_cache(maxsize=64)(content_hash)


class Usage(Noun):
    """Tokens and money of a call. None is unknown, which is not 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class Prices(Noun):
    """What one token costs, in US dollars; `cached` where it is input that the provider has read before, if less."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0)

    def cost(self, usage: Usage) -> float | None:
        """Dollars for a call; None where its tokens are unknown."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        repeated = self.input if self.cached is None else self.cached
        return (usage.input_tokens - cached) * self.input + cached * repeated + usage.output_tokens * self.output


FREE = Prices(input=0.0, output=0.0)
"""Of the stand-in."""


class Request(Noun):
    """One call to a model. `seed` already holds the attempt, so that a retry may draw anew."""

    prompt: Prompt
    max_output_tokens: int
    temperature: float = 0.0
    seed: int = 0
    timeout: float = 300.0


class Completion(Noun):
    """A model's raw answer, before anyone reads it.

    `finish` is "stop", "length", "content_filter" or what the provider said; `refusal` and `reasoning`
    are the provider's separate fields; `model` is the name that answered.
    """

    text: str | None
    finish: str = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    usage: Usage = Usage()
    model: str = ""


class Receipt(Noun):
    """One paid call: who asked, which attempt, what it cost, and which run paid.

    `hedge` marks the second request of an attempt, sent because the first was slow; it is paid for by itself.
    """

    stage: str
    item: str
    prompt_sha: str
    attempt: int
    accepted: bool
    model: str
    usage: Usage = Usage()
    run: str = ""
    hedge: bool = False
