"""What a run writes down: its plan, each batch before it starts, each state after it, and the result."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from combee_core.base import Noun
from combee_core.calls import Receipt
from combee_core.config import RunRequest
from combee_core.types import Accounting, Sample, SetAside, Trajectory, Unread, Update

Fate = Literal["learned", "nothing", "skipped", "refused", "failed", "deferred"]


class Item(Noun):
    """A trace or sample of the plan: its id and the hash of its content."""

    id: str
    digest: str


class Plan(Noun):
    """Written create-only before the first call. Everything later reads it, never the present `latest`."""

    key: str
    request: RunRequest
    base_version: int
    items: tuple[Item, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def batch_count(self) -> int:
        """Number of batches with the planned size."""
        return -(-len(self.items) // self.request.settings.batch_size)


class Batch(Noun):
    """Written create-only before the batch starts: all that it reads besides the state before it."""

    number: int
    trajectories: tuple[Trajectory, ...] = ()
    samples: tuple[Sample, ...] = ()


class TraceFate(Noun):
    """What became of one trace, and why."""

    trace_id: str
    fate: Fate
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        """True where the trace was read to the end, whether it taught something or nothing."""
        return self.fate in ("learned", "nothing")


class State(Noun):
    """Written create-only when a batch is done: the learner's state after it and how it came about.

    `copies_met` is the share of its reflections that lay twice in one group, from 0 to 1.
    """

    number: int
    state: dict[str, Any]
    update: Update = Update()
    fates: tuple[TraceFate, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    groups: int = 0
    copies_met: float = 0.0


class Amounts(Noun):
    """A figure of this invocation and of the whole run. None is unknown; `at_least` marks a sum with unknown parts."""

    this_run: float | int | None = 0
    total: float | int | None = 0
    at_least: bool = False


class Failure(Noun):
    """Where a run failed."""

    stage: str
    item: str
    message: str


class RunResult(Noun):
    """A run's outcome. Commands print the figures; fates and what was set aside are for the summary."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    playbook: str
    version: int | None
    digest: str | None
    flow_run_id: str = ""
    run: str = ""
    simulated: bool = False
    note: str = ""
    accounting: Accounting = Accounting()
    model_calls: dict[str, int] = Field(default_factory=dict)
    tokens: Amounts = Amounts()
    cost: Amounts = Amounts()
    groups: tuple[int, ...] = ()
    fates: tuple[TraceFate, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    left_out: tuple[Unread, ...] = ()
    error: Failure | None = None
