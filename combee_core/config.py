"""Settings: frozen, typed, parsed once at the edge and passed down."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field, model_validator

from combee_core.base import Form, is_simulated
from combee_core.calls import Prices
from combee_core.types import ShuffleMode

SIMULATED = "simulated/overload"
AUTO = "auto"
Auto = Literal["auto"]
Scoring = Literal["exact", "number", "formula"]
Grouping = Literal["paper", "bounded", "auto"]
"""How many groups: ⌊√n⌋ as in the paper, or as many as hold at most `max_group` entries each."""
MergeForm = Literal["paper", "cluster", "auto"]
"""How groups' operations become one list: in one call as in the paper, or in code with a call for each cluster."""
MOST_DAYS = 3_660
"""Ten years: a longer range is a slip of the pen."""
Peak = Literal["fit", "difference"]
"""Where the steepest slope of the curve is read: off the fit at the smallest size, or between two measurements."""


STAGES = ("rollout", "reflect", "curate", "merge")
OnBudget = Literal["hold", "publish"]
"""What becomes of a run that a cap ends: nothing is published, or what is complete of it."""


class Budget(Form):
    """Hard caps; what is not given is not capped. A call is sent only if what it may take at most still fits."""

    cost: float | None = Field(None, gt=0, description="US dollars at most")
    tokens: int | None = Field(None, gt=0, description="Tokens of input and output at most")
    calls: int | None = Field(None, gt=0, description="Requests at most")
    minutes: float | None = Field(None, gt=0, description="Minutes at most")


class ModelSettings(Form):
    """Which model, and how it is asked. Only what can change an answer is part of a saved answer's key."""

    model: str = Field(SIMULATED, description="A litellm model string, or simulated/overload for the stand-in")
    api_base: str | None = Field(
        None, title="API base", description="Base address; by default the provider's own or its variable"
    )
    temperature: float = Field(0.0, ge=0, description="Of the sampling")
    max_output_tokens: int = Field(8192, gt=0, description="Per call, with room for reasoning tokens")
    context_tokens: int | None = Field(None, description="Largest input of a call; by default what litellm knows")
    use_reasoning: bool = Field(False, description="Read the reasoning field when the content is empty")
    timeout: float = Field(300.0, gt=0, description="Seconds for one call")
    concurrency: int = Field(32, gt=0, description="Calls in flight at the start")
    max_concurrency: int = Field(256, gt=0, description="Calls in flight at most, where latency and 429s allow more")
    rpm: int | None = Field(None, gt=0, title="RPM", description="Requests a minute that the provider allows")
    tpm: int | None = Field(None, gt=0, title="TPM", description="Tokens a minute that the provider allows")
    processes: int = Field(1, gt=0, description="Processes that share these limits; each takes its part")
    hedge: float = Field(4.0, ge=0, description="Times the median after which a slow call is sent once more (0: never)")
    retries: int = Field(3, ge=0, description="Retries of a failed call (waits for 429 and 529 are not retries)")
    retry_delay: float = Field(1.0, ge=0, description="Seconds before the first retry; doubles each time")
    breaker: int = Field(
        20,
        ge=0,
        description="Calls that fail in a row, or useless answers, that end a run (0: not even a silent model does)",
    )
    fallbacks: tuple[str, ...] = Field(
        (), description="Models that are asked where the first fails: NAME, or STAGE=NAME; NAME@URL for its own server"
    )
    price: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = Field(
        None,
        description="US dollars for a million tokens of input and of output of the first model; by default, and for "
        "fallbacks always, what litellm knows",
    )
    max_waits: int = Field(6, ge=0, description="How often one call waits out a 429 or 529")
    wait_budget: float = Field(900.0, ge=0, description="Seconds that one call may wait in all")

    def identity(self) -> dict[str, Any]:
        """What an answer depends on."""
        return self.model_dump(
            include={"model", "api_base", "temperature", "max_output_tokens", "context_tokens", "use_reasoning"}
        )

    @model_validator(mode="after")
    def _no_stand_in_for_a_real_model(self) -> ModelSettings:
        for one in self.everyone:
            if is_simulated(one.model.removeprefix("openai/")) != is_simulated(self.model.removeprefix("openai/")):
                raise ValueError(f"{one.model} cannot stand in for {self.model}: one of them is simulated")
        return self

    def chain(self, stage: str = "") -> tuple[ModelSettings, ...]:
        """These settings, then those of each model that is asked at `stage` where the ones before it fail."""
        named = (name.removeprefix(f"{stage}=") for name in self.fallbacks if _stage_of(name) in ("", stage))
        return (self, *map(self._with_model, named))

    @property
    def everyone(self) -> tuple[ModelSettings, ...]:
        """The settings of each model that may be asked, once."""
        every = [self, *(one for stage in STAGES for one in self.chain(stage))]
        return tuple({(one.model, one.api_base): one for one in every}.values())

    def _with_model(self, name: str) -> ModelSettings:
        model, _, address = name.partition("@http")
        where = f"http{address}" if address else None
        # What holds for the first model alone: its price, its window.
        its_own = {"price": None, "context_tokens": None}
        return self.model_copy(update={"model": model, "api_base": where, "fallbacks": (), **its_own})

    @property
    def attempts(self) -> int:
        """How often a prompt is asked at most, over all models that may be asked at one stage."""
        return (self.retries + 1) * max(len(self.chain(stage)) for stage in STAGES)

    @property
    def task_retries(self) -> int:
        """How often a task is repeated: each model that may be asked has its retries, and the next is asked at once."""
        return self.retries * (self.attempts // (self.retries + 1))

    @property
    def prices(self) -> Prices | None:
        """What tokens cost, where the settings say so."""
        return self.price and Prices(input=self.price[0] / 1e6, output=self.price[1] / 1e6)

    @property
    def most_requests(self) -> int:
        """The greatest number of requests that one prompt can cause; a slow call may be sent twice."""
        return self.attempts * (self.max_waits + 1) * (2 if self.hedge else 1)


def _stage_of(fallback: str) -> str:
    """The stage that a fallback is for; empty where it is for all."""
    stage, _, model = fallback.partition("=")
    return stage if model and stage in STAGES else ""


class SizeSettings(Form):
    """How `batch_size="auto"` chooses (Combee, dynamic batch-size controller)."""

    candidates: tuple[int, ...] = Field((5, 10, 20, 40, 80), min_length=1, description="Batch sizes that are measured")
    tau: float = Field(0.016, gt=0, lt=1, description="Share of the peak slope at which larger batches stop to pay")
    peak: Peak = Field("fit", description="fit: slope of the fitted curve at the smallest size; difference: measured")
    cap: int = Field(200, gt=0, description="Largest batch that is chosen")
    fallback: int = Field(40, gt=0, description="Batch size where nothing can be measured")
    drift: float = Field(0.5, gt=0, description="Share by which delays may leave the curve before it is measured again")
    anew: bool = Field(False, title="Measure anew", description="Measure now, whatever an earlier run has found")


class AlarmBars(Form):
    """When a run's end raises an alarm. Never part of what a run learns."""

    learned: float = Field(0.8, ge=0, le=1, description="Alarm below this share of traces that are read to the end")
    survival: float = Field(0.2, ge=0, le=1, description="Alarm below this share of new insights that leave the reduce")
    silent: int = Field(20, gt=0, description="Alarm where so many traces or more teach nothing")
    cost: float | None = Field(None, gt=0, description="Alarm where a run costs more US dollars")


_PLACES = ("shard_size", "dask", "prompts", "alarms", "budget", "day_budget", "on_budget")


class RunSettings(Form):
    """How a run learns."""

    model: ModelSettings = Field(ModelSettings(), description="Which model learns, and how it is asked")
    learner: str = Field("ace", description="How it learns: ace keeps bullets with counters; there is no other yet")
    prompts: str | None = Field(None, description="Folder whose .md files replace the learner's own")
    batch_size: Annotated[int, Field(gt=0)] | Auto = Field("auto", description="Traces to a batch; auto: as measured")
    sizes: SizeSettings = Field(SizeSettings(), description="How the batch size is found where it is auto")
    copies: Annotated[int, Field(gt=0)] | Auto = Field(
        "auto", description="How often each reflection is dealt (p in the paper); auto: twice, into bounded groups once"
    )
    shuffle: ShuffleMode = Field(
        "paper", description="paper: as drawn; spread: copies in different groups, as in bounded groups always"
    )
    seed: int = Field(0, description="Of the shuffles and of the model's sampling")
    grouping: Grouping = Field(
        "auto",
        description="paper: √n groups; bounded: at most max-group entries in each; auto: bounded above 100 insights",
    )
    max_group: int = Field(5, gt=1, description="Entries of a bounded group at most")
    merge: MergeForm = Field(
        "auto",
        description="paper: one call; cluster: in code, and a call for each cluster; auto: paper up to 12 operations",
    )
    levels: int = Field(2, ge=2, description="Levels of the reduce; more than two merge in rounds, for comparison")
    embedding: str | None = Field(
        None,
        description="A litellm embedding model that tells a merge which texts are alike; without, pieces of words do",
    )
    alike: float | None = Field(
        None, gt=0, le=1, description="Cosine from which two texts are alike; by default 0.68, as pieces of words need"
    )
    max_failed: float = Field(0.05, ge=0, le=1, description="Share of a batch's reflections that may fail")
    shard_size: Annotated[int, Field(gt=0)] | Auto = Field("auto", description="Traces or groups to one Prefect task")
    dask: str | None = Field(None, description="Address of a Dask scheduler whose workers run the tasks")
    alarms: AlarmBars = Field(AlarmBars(), description="When the end of a run raises an alarm; it stops nothing")
    budget: Budget = Field(Budget(), description="Caps of each run (a day, or an input), all its attempts together")
    day_budget: Budget = Field(Budget(), description="Caps of a day in UTC, all runs of this store together")
    on_budget: OnBudget = Field("hold", description="hold: at a cap nothing is published; publish: what is complete")

    @model_validator(mode="after")
    def _clusters_have_two_levels(self) -> RunSettings:
        if self.merge == "cluster" and self.levels > 2:
            raise ValueError(f"merge=cluster has two levels, not {self.levels}; merge=paper can have more")
        return self

    def identity(self) -> dict[str, Any]:
        """What the result depends on: part of a run's key. Of `prompts` the content counts, not the place."""
        own = self.model_dump(mode="json", exclude={"model", *_PLACES})
        return {**own, "model": self.model.identity()}

    def placed_as(self, other: RunSettings) -> RunSettings:
        """These settings with `other`'s place and patience: whatever is not part of the identity."""
        identity = self.model.identity()
        patience = {name: value for name, value in other.model if name not in identity}
        places = {name: getattr(other, name) for name in _PLACES}
        return self.model_copy(update={**places, "model": self.model.model_copy(update=patience)})


def one_spelling(uri: str) -> str:
    """A place in the one way in which it is compared: a day learned from `/a` is not learned again from `file:///a/`."""
    scheme, _, rest = uri.rpartition("://")
    if scheme not in ("", "file"):
        return f"{scheme}://{rest.rstrip('/')}"
    plain = unquote(rest) if scheme and rest else uri
    return plain.rstrip("/") or plain


class Source(Form):
    """Where a run's input comes from: traces (already rolled out) or samples (to be rolled out)."""

    uris: tuple[Annotated[str, AfterValidator(one_spelling)], ...] = Field(
        (), title="URIs", description="Files, folders or s3:// prefixes that hold the traces or samples"
    )
    day: date | None = Field(None, description="Only traces of this day; a night takes the day before without it")
    timezone: str = Field("UTC", title="Time zone", description="Whose midnight ends a day, such as Europe/Berlin")
    kind: Literal["traces", "samples", "backlog"] = Field(
        "traces",
        description="traces: of finished runs; samples: to be solved, by combee learn alone; backlog: set by the runs "
        "that try again what was filed",
    )
    limit: int | None = Field(None, gt=0, description="Only the first N, by id")
    ground_truth: bool = Field(True, description="Show expected answers to the reflector, where the input has them")
    fields: dict[str, str] | None = Field(None, description="JSON: names of our fields to those of plain JSON lines")
    scorer: Scoring = Field("exact", description="How an answer to a sample is judged")


Missed = Literal["run", "skip"]
"""What a night does about days that were missed: learn them first, or only name them."""


class Nights(Form):
    """What a night looks at besides its own day. With an explicit day it looks at that day alone."""

    lookback: int = Field(7, ge=0, le=366, description="Days before its own that a night looks at for missed traces")
    missed: Missed = Field("run", description="run: learn missed days and late traces first; skip: only name them")


class DateRange(Form):
    """Days one after the other, both ends included."""

    first: date = Field(description="The first day")
    last: date = Field(description="The last day, included")

    @model_validator(mode="after")
    def _runs_forward(self) -> DateRange:
        if self.last < self.first:
            raise ValueError(f"{self.first}..{self.last} ends before it starts")
        if len(self) > MOST_DAYS:
            raise ValueError(f"{self.first}..{self.last} are {len(self):,} days; at most {MOST_DAYS:,} at once")
        return self

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def days(self) -> tuple[date, ...]:
        """Every day, in order."""
        return tuple(self.first + timedelta(days=n) for n in range(len(self)))


class RunRequest(Form):
    """What is learned from, where to, and how."""

    playbook: str = Field(
        "playbook", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Name of the playbook that learns"
    )
    store: str = Field("file://./combee-store", description="Where everything lies: file:///… or s3://bucket/prefix")
    source: Source = Field(Source(), description="What is learned from")
    settings: RunSettings = Field(RunSettings(), description="How it is learned")
    again: bool = Field(False, description="Learn anew what was learned already")

    @property
    def label(self) -> str:
        """The playbook, and the day where it learns one (or `backlog`): what tells its flow runs apart in a list."""
        part = "backlog" if self.source.kind == "backlog" else self.source.day
        return f"{self.playbook}-{part}" if part else self.playbook
