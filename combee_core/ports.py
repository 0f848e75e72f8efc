"""The ports: what the pure core needs from the world, each a Protocol whose docstring is the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from combee_core.calls import Completion, Prices, Prompt, Request
from combee_core.types import (
    Delta,
    Group,
    Operation,
    Outcome,
    Reflection,
    Sample,
    SetAside,
    TraceFile,
    Trajectory,
    Unread,
    Update,
)

T = TypeVar("T")
S = TypeVar("S")


class LanguageModel(Protocol):
    """Answers one request.

    Raises `ModelError` leaves only. It never retries and never waits: that is the client's work. Dropped
    connections are `ModelFault`, time-outs `ModelTimeout`: those in silence count at once. Safe to call from many
    coroutines of one event loop.
    """

    @property
    def name(self) -> str:
        """Identity for keys of saved answers: model string and base address."""

    @property
    def context_tokens(self) -> int | None:
        """The most input tokens that one call takes; None where nobody knows. May be slow at first."""

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost; None where nobody knows. May be slow at first."""

    def count(self, text: str) -> int:
        """Tokens of `text`: exact where the model's tokenizer is known, else an estimate. May be slow at first."""

    async def preflight(self) -> None:
        """Find out cheaply if the model can be used; raises `ModelUnusable` if not."""

    async def complete(self, request: Request) -> Completion:
        """Ask once."""


class Blob(NamedTuple):
    """An object's bytes and the tag (ETag, hash) that `replace` compares."""

    data: bytes
    tag: str


class Aged(NamedTuple):
    """An object's key, when it was last written (aware), and its size in bytes."""

    key: str
    written: datetime
    size: int


class Store(Protocol):
    """Objects under slash-separated keys, with atomic create and compare-and-swap.

    After an ambiguous answer (time-out, dropped connection, a 412 that may be our own earlier try) a write reads
    back and compares bytes, so True always means "my bytes are there". Missing keys read as None; a refusal is
    `StoreDenied`, never None; no answer is `StoreUnavailable`. Readers never see half an object.
    """

    @property
    def uri(self) -> str:
        """`file:///…`, `s3://bucket/prefix` or `memory://name`, without a trailing slash."""

    def read(self, key: str) -> Blob | None:
        """The object, or None where there is none."""

    def create(self, key: str, data: bytes) -> bool:
        """Write only if absent. True if `data` is what the key holds afterwards."""

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        """Write only if the object still has `tag` (None: is absent). False if it has moved."""

    def list(self, prefix: str) -> Sequence[str]:
        """Keys that start with `prefix`, sorted."""

    def ages(self, prefix: str) -> Iterator[Aged]:
        """What `list` names, in any order and by the store's own clock; an object that goes meanwhile is left out."""

    def delete(self, key: str) -> None:
        """Remove; absent is fine."""

    def lease(self, key: str, holder: str) -> AbstractContextManager[None]:
        """Hold `key` for this process while inside; `RunHeld` with the holder's text if a live process has it.

        The hold of a dead process (same host and gone, or silent for three heartbeats) is taken over.
        """

    def holder(self, key: str) -> str | None:
        """Who holds `key` now, by the words given to `lease`; None where no live process does. Takes nothing."""


class TraceReader(Protocol):
    """Reads one trace format. A format is one module in `combee_core/traces/` with a `READER`."""

    @property
    def name(self) -> str:
        """The format's name, as it is printed."""

    @property
    def fallback(self) -> bool:
        """True for a format that takes almost anything: it is asked last."""

    def recognises(self, file: TraceFile) -> bool:
        """True if the content (never the name) is of this format. Must not raise."""

    def read(self, file: TraceFile, options: ReadOptions) -> Iterator[Trajectory | Unread]:
        """Every run in the file; what cannot be read is an `Unread`, never an exception."""


@dataclass(frozen=True)
class ReadOptions:
    """How traces are read: whether expected answers may be used, and a field map for plain rows."""

    ground_truth: bool = True
    fields: Mapping[str, str] | None = None


class Scorer(Protocol):
    """Judges an answer to a sample."""

    def __call__(self, sample: Sample, answer: str) -> Outcome:
        """The outcome; must not raise."""


@dataclass(frozen=True)
class Question(Generic[T]):
    """A prompt and the pure function that turns the answer's JSON into a noun.

    `parse` raises `AnswerMalformed` for an answer that has nothing usable.
    """

    prompt: Prompt
    parse: Callable[[Any], T]


@dataclass(frozen=True)
class Applied(Generic[S]):
    """A new state, what was not applied, and the bullet id that each operation (by index) ended in."""

    state: S
    set_aside: tuple[SetAside, ...] = ()
    ids: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """The generator's answer to a sample and the bullets that it used."""

    answer: str
    cited: tuple[str, ...] = ()
    reasoning: str = ""


class Learner(Protocol[S]):
    """Owns what is learned. Builds prompts and parses answers; never calls a model and never does I/O."""

    @property
    def name(self) -> str:
        """Short name, as in `--learner`."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever prompts or parsing change, so that no answer to an old prompt is re-used."""

    def empty(self) -> S:
        """The state before anything was learned."""

    def dump(self, state: S) -> dict[str, Any]:
        """The state as JSON-able data."""

    def load(self, data: Mapping[str, Any]) -> S:
        """The inverse of `dump`."""

    def digest(self, state: S) -> str:
        """Hash of what readers can tell apart."""

    def context(self, state: S) -> str:
        """What agents read."""

    def statements(self, state: S) -> Sequence[str]:
        """What the state says, one by one: an insight that is among it is nothing new."""

    def solve(self, state: S, sample: Sample) -> Question[Solution]:
        """The generator's question."""

    def reflect(self, state: S, trajectory: Trajectory) -> Question[Reflection]:
        """The reflector's question."""

    def curate(self, state: S, group: Group) -> Question[Delta]:
        """The curator's question about one group."""

    def merge(self, state: S, operations: Sequence[Operation]) -> Question[Delta]:
        """The merger's question about all groups' operations."""

    def apply(self, state: S, update: Update, version: int) -> Applied[S]:
        """The state after `update`; ids are given here and nowhere else."""
