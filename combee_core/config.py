"""Settings: frozen, typed, parsed once at the edge and passed down."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field

from combee_core.base import Noun
from combee_core.types import ShuffleMode

SIMULATED = "simulated/overload"
Scoring = Literal["exact", "number", "formula"]


class ModelSettings(Noun):
    """Which model, and how it is asked. Only what can change an answer is part of a saved answer's key."""

    model: str = Field(SIMULATED, description="A litellm model string, or simulated/overload for the stand-in")
    api_base: str | None = Field(None, description="Base address; by default the provider's own or its variable")
    temperature: float = Field(0.0, ge=0, description="Of the sampling")
    max_output_tokens: int = Field(8192, gt=0, description="Per call, with room for reasoning tokens")
    context_tokens: int | None = Field(None, description="Largest input of a call; by default what litellm knows")
    use_reasoning: bool = Field(False, description="Read the reasoning field when the content is empty")
    timeout: float = Field(300.0, gt=0, description="Seconds for one call")
    concurrency: int = Field(32, gt=0, description="Calls in flight at most")
    retries: int = Field(2, ge=0, description="Retries of a failed call (waits for 429 and 529 are not retries)")
    retry_delay: float = Field(1.0, ge=0, description="Seconds before the first retry; doubles each time")
    max_waits: int = Field(6, ge=0, description="How often one call waits out a 429 or 529")
    wait_budget: float = Field(900.0, ge=0, description="Seconds that one call may wait in all")

    def identity(self) -> dict[str, Any]:
        """What an answer depends on."""
        return self.model_dump(
            include={"model", "api_base", "temperature", "max_output_tokens", "context_tokens", "use_reasoning"}
        )

    @property
    def most_requests(self) -> int:
        """The greatest number of requests that one prompt can cause."""
        return (self.retries + 1) * (self.max_waits + 1)


class RunSettings(Noun):
    """How a run learns."""

    learner: str = "ace"
    prompts: str | None = Field(None, description="Folder whose .md files replace the learner's own")
    batch_size: int = Field(40, gt=0, description="Traces or samples to an iteration")
    copies: int = Field(2, gt=0, description="How often each reflection is dealt into the groups (p in the paper)")
    shuffle: ShuffleMode = Field("paper", description="paper: as drawn; spread: copies in different groups")
    seed: int = Field(0, description="Of the shuffles and of the model's sampling")
    max_failed: float = Field(0.05, ge=0, le=1, description="Share of failed reflections that fails a batch")
    rollout_shard: int = Field(8, gt=0, description="Samples rolled out by one task")
    model: ModelSettings = ModelSettings()

    def identity(self) -> dict[str, Any]:
        """What the result depends on: part of a run's key. Of `prompts` the content counts, not the place."""
        own = self.model_dump(exclude={"model", "rollout_shard", "prompts"})
        return {**own, "model": self.model.identity()}


class Source(Noun):
    """Where a run's input comes from: traces (already rolled out) or samples (to be rolled out)."""

    kind: Literal["traces", "samples"] = "traces"
    uris: tuple[str, ...] = ()
    day: date | None = Field(None, description="Only traces of this day")
    timezone: str = "UTC"
    limit: int | None = Field(None, gt=0, description="Only the first N, by id")
    ground_truth: bool = True
    fields: dict[str, str] | None = Field(None, description="Our field names to those of plain JSON lines")
    scorer: Scoring = "exact"


class RunRequest(Noun):
    """Everything that a run needs to know, as a flow's parameter."""

    playbook: str = Field("playbook", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    store: str = "file://./combee-store"
    source: Source = Source()
    settings: RunSettings = RunSettings()
    again: bool = Field(False, description="Start a new run although this one is finished")
