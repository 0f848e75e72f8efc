"""The nouns that flow through the pipeline: all frozen, all plain data.

TraceFile ─▶ Trajectory ─▶ Reflection ─▶ Group ─▶ Delta ─▶ Update ─▶ (a new state)
"""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from combee_core.base import Noun, content_hash
from combee_core.calls import Receipt


class TraceFile(Noun):
    """One file or object as the agent's logger left it."""

    uri: str
    data: bytes
    modified: datetime


class ToolCall(Noun):
    """One call that the agent made; `arguments` is the text as logged (usually JSON)."""

    name: str
    arguments: str = "{}"
    id: str = ""


class Step(Noun):
    """One message of a run. `name` is the tool of a tool result."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    name: str = ""


class Outcome(Noun):
    """How a run ended. `score` None means that nobody scored it, which is not 0.

    `source` says where the feedback came from: "ground_truth" (compared with what was expected),
    "reward" (a number alone), "logged" (text found in the trace) or "none".
    """

    score: float | None = None
    label: str = ""
    feedback: str = ""
    status: Literal["finished", "error", "no_agent_activity"] = "finished"
    source: Literal["ground_truth", "reward", "logged", "none"] = "none"


class Trajectory(Noun):
    """One normalised run with its outcome.

    `policy` is the agent's system message, kept apart because many runs share it. `metadata` is for
    people and is shown to no model. `cited` are the bullet ids that the agent said it used.
    """

    trace_id: str
    task: str
    policy: str = ""
    steps: tuple[Step, ...] = ()
    outcome: Outcome = Outcome()
    cited: tuple[str, ...] = ()
    when: datetime | None = None
    source: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Content hash: what a model may see of the run, without where or when it was found."""
        return content_hash(self.model_dump(mode="json", exclude={"when", "source", "metadata"}))


class Unread(Noun):
    """A file, line or run that could not become a trajectory, and why."""

    where: str
    reason: str
    trace_id: str = ""


class Sample(Noun):
    """A problem to solve, with its expected answer when there is one."""

    id: str
    context: str
    target: str | None = None

    @property
    def digest(self) -> str:
        """Content hash of the problem and its answer."""
        return content_hash(self.context, self.target)


class SetAside(Noun):
    """Something that was not used, with the reason: nothing is dropped in silence."""

    what: str
    reason: str
    where: str = ""


class BulletTag(Noun):
    """The reflector's verdict on one bullet that the agent used."""

    bullet_id: str
    tag: Literal["helpful", "harmful", "neutral"]


class Reflection(Noun):
    """What one trajectory taught. An empty `key_insight` means that it taught nothing."""

    trace_id: str
    key_insight: str = ""
    reasoning: str = ""
    error_identification: str = ""
    root_cause_analysis: str = ""
    correct_approach: str = ""
    tags: tuple[BulletTag, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    outcome: Outcome = Outcome()

    @property
    def is_nothing(self) -> bool:
        """True when it carries no insight and so enters no group."""
        return not self.key_insight.strip()


ShuffleMode = Literal["paper", "spread"]
"""How copies are dealt into groups: as drawn, or each into another group."""


class Group(Noun):
    """The reflections that one curator call reads; `number` counts from 1. A copy may appear twice."""

    number: int
    of: int
    entries: tuple[Reflection, ...]

    @property
    def name(self) -> str:
        """`curate-g03`, as it is called in the UI, in logs and in errors."""
        return f"curate-g{self.number:02d}"


class OperationKind(StrEnum):
    """What an operation does to the playbook."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    REMOVE = "REMOVE"


class Operation(Noun):
    """One proposed change. `sources` are trace ids, set by code; `inferred` marks ids that no model named.

    `seen` are the texts that `bullet_ids` had when the change was proposed, so that a bullet which has changed
    since is not overwritten. `origin` is the call that proposed it.
    """

    kind: OperationKind
    text: str = ""
    section: str = ""
    bullet_ids: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    inferred: bool = False
    origin: str = ""


class OperationFate(Noun):
    """What a merge did with one operation that entered it.

    `into` is the place, among the operations of the same delta, of the one that it ended in; None where it was dropped.
    """

    text: str
    origin: str
    fate: Literal["kept", "merged", "dropped"]
    because: str = ""
    into: int | None = None


class Conflict(Noun):
    """Operations that cannot all be right: alike, and yet not the same. They are shown to a person, never averaged."""

    texts: tuple[str, ...]
    sources: tuple[str, ...] = ()
    reason: str = ""


class Delta(Noun):
    """What one curator or merger call proposes. `fates` has one entry for each operation that entered a merge."""

    operations: tuple[Operation, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    fates: tuple[OperationFate, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class Vote(Noun):
    """One trace's verdict on one bullet; counted once, whatever the number of copies."""

    trace_id: str
    bullet_id: str
    tag: Literal["helpful", "harmful"]


class Update(Noun):
    """What one batch changes: the merged operations and the votes, ready to be applied to a state.

    `day` is the day that it was learned from; what a newer day wrote is not overwritten. Verdicts of the traces
    `withdrawn` are taken back before the votes are counted: those traces have changed.
    """

    day: date | None = None
    withdrawn: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    votes: tuple[Vote, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    fates: tuple[OperationFate, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


ReflectFate = Literal["insight", "nothing", "skipped", "refused", "failed"]


class Reflected(Noun):
    """The reflect stage's result for one trace; exactly one a trace."""

    trace_id: str
    fate: ReflectFate
    reflection: Reflection | None = None
    reason: str = ""
    receipts: tuple[Receipt, ...] = ()


class Curated(Noun):
    """The curate stage's result for one group; `refused` are traces that the model would not read.

    `calls` is the number of parts that the group was read in: more than one where it was too large, cut or refused.
    """

    group: int
    delta: Delta
    refused: tuple[str, ...] = ()
    calls: int = 1
    receipts: tuple[Receipt, ...] = ()


class Merged(Noun):
    """The merge stage's result: of one merge call, or of all of a batch.

    `between` are the rounds before the last one, where there were more than two levels.
    """

    delta: Delta
    between: tuple[Delta, ...] = ()
    receipts: tuple[Receipt, ...] = ()


class Survival(Noun):
    """How many distinct new insights went into the reduce and came out of one of its levels.

    Insights that say what was in the playbook before are not new: that they are `known` counts apart, since a curator
    is right to leave them alone. `estimated` where an insight is a cluster of similar texts and not a known rule.
    """

    level: str
    before: int
    after: int
    known: int = 0
    estimated: bool = True

    @property
    def share(self) -> float:
        """From 0 to 1; nothing in, nothing lost."""
        return self.after / self.before if self.before else 1.0


class RolledOut(Noun):
    """The rollout stage's result for one sample."""

    sample_id: str
    trajectory: Trajectory | None = None
    reason: str = ""
    receipts: tuple[Receipt, ...] = ()
