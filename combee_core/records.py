"""What a run writes down: its plan, each batch before it starts, each state after it, and the result."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from combee_core.base import SLIM, Noun
from combee_core.calls import Receipt
from combee_core.config import RunRequest
from combee_core.types import Sample, SetAside, Survival, Trajectory, Unread, Update

Fate = Literal["learned", "nothing", "skipped", "refused", "failed", "deferred"]


@dataclass(frozen=True, slots=True, config=SLIM)
class Item:
    """A trace or sample of the plan: its id and the hash of its content."""

    id: str
    digest: str


class Plan(Noun):
    """Written create-only before the first call. Everything later reads it, never the present `latest`.

    `withdrawn` are the ids of traces that were learned before, with another content.
    """

    key: str
    request: RunRequest
    base_version: int
    items: tuple[Item, ...]
    unread: tuple[Unread, ...] = ()
    withdrawn: tuple[str, ...] = ()


class Sizing(Noun):
    """The batches that a plan's `total` items are cut into: those of `profile`, then all of `batch_size`.

    `batch_size` is None while the profile is still being measured. `reason` says how it came about.
    """

    total: int
    profile: tuple[int, ...] = ()
    batch_size: int | None = None
    reason: str = ""

    @property
    def count(self) -> int:
        """Number of batches that are known by now."""
        rest = max(0, self.total - sum(self.profile))
        return len(self.profile) + (-(-rest // self.batch_size) if self.batch_size else 0)

    @property
    def told(self) -> str:
        """The batch size and how it came about: `12, as given`, `41 (after 5, 10 to measure): …`."""
        if self.reason.startswith(f"{self.batch_size}, "):
            return self.reason
        measured = f" (after {', '.join(map(str, self.profile))} to measure)" if self.profile else ""
        return f"{self.batch_size}{measured}: {self.reason}"

    def part(self, number: int) -> slice:
        """The items of batch `number`, which counts from 1."""
        before = self.profile[: number - 1]
        size = self.profile[number - 1] if number <= len(self.profile) else self.batch_size or 0
        start = sum(before) + max(0, number - 1 - len(self.profile)) * size
        return slice(start, min(start + size, self.total))


class Again(Noun):
    """Sizes of the profile whose delay was lost: each is measured once more, on the traces that come next."""

    sizes: tuple[int, ...]


class Batch(Noun):
    """Written create-only before the batch starts: all that it reads besides the state before it."""

    number: int
    trajectories: tuple[Trajectory, ...] = ()
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, config=SLIM)
class TraceFate:
    """What became of one trace, and why."""

    trace_id: str
    fate: Fate
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        """True where the trace was read to the end, whether it taught something or nothing."""
        return self.fate in ("learned", "nothing")


class Cut(Noun):
    """Written create-only when a cap ends a run that publishes what it has: its first `batches`, and why no more.

    `part` says what is in the last of them, where it is not complete.
    """

    batches: int
    reason: str
    part: str = ""

    @property
    def published(self) -> str:
        """What is published, in words."""
        complete = self.batches - bool(self.part)
        batches = "batch" if complete == 1 else "batches"
        named = [f"{complete} complete {batches}"] if complete or not self.part else []
        return " and ".join(filter(None, [*named, self.part]))


class State(Noun):
    """Written create-only when a batch is done: the learner's state after it and how it came about.

    `copies_met` is the share of its reflections that lay twice in one group, from 0 to 1; `calls` are the parts that
    its groups were read in; `survival` has an entry for each level of the reduce. `cut` is that of a run which a cap
    ended in this batch, of which it then holds a part.
    """

    number: int
    state: dict[str, Any]
    update: Update = Update()
    fates: tuple[TraceFate, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    groups: int = 0
    calls: int = 0
    copies_met: float = 0.0
    survival: tuple[Survival, ...] = ()
    cut: Cut | None = None


class Accounting(Noun):
    """What became of every trace: exactly one of six fates each, adding up to `in`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    total: int = Field(default=0, alias="in")
    learned: int = 0
    nothing: int = 0
    skipped: int = 0
    refused: int = 0
    failed: int = 0
    deferred: int = 0

    @property
    def balances(self) -> bool:
        """True when every trace has a fate."""
        parts = (self.learned, self.nothing, self.skipped, self.refused, self.failed, self.deferred)
        return sum(parts) == self.total


class Amounts(Noun):
    """A figure of this invocation and of the whole run. None is unknown; `at_least` marks a sum with unknown parts."""

    this_run: float | int | None = 0
    total: float | int | None = 0
    at_least: bool = False


def together(amounts: Iterable[Amounts]) -> Amounts:
    """Added up. What is known is summed, and is at least that where a part is unknown; of nothing but unknown parts
    nothing is known.
    """
    parts = tuple(amounts)
    figures = {name: [getattr(part, name) for part in parts] for name in ("this_run", "total")}
    known = {name: [value for value in values if value is not None] for name, values in figures.items()}
    sums = {name: sum(known[name]) if known[name] or not parts else None for name in figures}
    mixed = any(0 < len(known[name]) < len(parts) for name in figures)
    return Amounts(**sums, at_least=mixed or any(part.at_least for part in parts))


class Failure(Noun):
    """Where a run failed."""

    stage: str
    item: str
    message: str

    @property
    def told(self) -> str:
        """Where and why on one line; what the message names itself is not said before it as well."""
        why = " ".join(self.message.split())
        if why.startswith(f"{self.stage}:"):
            return why
        where = self.stage if self.item in why else f"{self.stage} {self.item}"
        return f"{where}: {why}"


Happened = Literal["learned", "supplement", "already learned", "no traces", "named only", "failed", "stopped"]


class DayResult(Noun):
    """What a night or a backfill did about one day. `traces` are those that it read, or would have."""

    day: date
    happened: Happened
    traces: int = 0
    version: int | None = None
    run: str = ""
    model_calls: int = 0
    note: str = ""


Status = Literal["done", "failed", "stopped", "budget"]
"""How a run ended: learned, in an error, stopped on purpose, or at a cap of its budget."""


class RunResult(Noun):
    """A run's outcome. Commands print the figures; what was set aside is for the summary.

    `fates` are those of traces that were not settled, with the reason; every trace's is in the state of its batch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    playbook: str
    version: int | None
    digest: str | None
    flow_run_id: str = ""
    run: str = ""
    simulated: bool = False
    note: str = ""
    status: Status = "done"
    accounting: Accounting = Accounting()
    model_calls: dict[str, int] = Field(default_factory=dict)
    tokens: Amounts = Amounts()
    cost: Amounts = Amounts()
    sizing: Sizing | None = None
    groups: tuple[int, ...] = ()
    calls: int = 0
    survival: tuple[Survival, ...] = ()
    fates: tuple[TraceFate, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    more_set_aside: int = 0
    left_out: tuple[Unread, ...] = ()
    days: tuple[DayResult, ...] = ()
    error: Failure | None = None
