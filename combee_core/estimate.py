"""What batches will cost before they start: calls, tokens, money and time, from what their traces weigh.

Each batch goes through the design's own rules: `sizes_of` makes the groups, `most_calls` the rounds of a merge. What
data decides (which traces teach something, what is alike) comes from experience, and its bounds are told besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import Field

from combee_core.base import Noun
from combee_core.call_counts import reduce_calls
from combee_core.calls import Prices, Usage
from combee_core.config import STAGES, RunSettings
from combee_core.expected import Weights, expected_reduce, room
from combee_core.experience import ASSUMED, Experience
from combee_core.fitting import expected_delay
from combee_core.pace import SPREAD, Stage, batch_seconds
from combee_core.sizes import Fit

_OUTCOME = 40
"""Tokens of an agent's feedback beside its answer, where a sample is still to be solved."""


class Count(Noun):
    """Calls. `at_most` is None where there is no bound."""

    at_least: int = 0
    expected: int = 0
    at_most: int | None = 0

    @property
    def is_exact(self) -> bool:
        """True where the design leaves nothing open."""
        return self.at_least == self.expected == self.at_most

    def times(self, number: int) -> Count:
        """So many times these calls."""
        most = None if self.at_most is None else self.at_most * number
        return Count(at_least=self.at_least * number, expected=self.expected * number, at_most=most)

    def plus(self, other: Count) -> Count:
        """These calls and the others."""
        most = None if self.at_most is None or other.at_most is None else self.at_most + other.at_most
        least, expected = self.at_least + other.at_least, self.expected + other.expected
        return Count(at_least=least, expected=expected, at_most=most)


class Load(Noun):
    """One batch: what the prompt of each trace holds besides instructions and playbook, in tokens.

    `traces` are still to be reflected on, `samples` to be solved before; `saved` reflections are in the store already.
    `times` such batches follow each other.
    """

    traces: tuple[int, ...] = ()
    samples: tuple[int, ...] = ()
    saved: int = 0
    times: int = 1

    @property
    def size(self) -> int:
        """Traces or samples of one batch."""
        return len(self.traces) + len(self.samples) + self.saved

    def spared(self, saved: int) -> Load:
        """The same where so many reflections, whichever they are, lie in the store: those of the mean size."""
        asked = len(self.traces) - saved
        mean = round(sum(self.traces) / len(self.traces)) if self.traces else 0
        return self.model_copy(update={"traces": (mean,) * asked, "saved": saved}) if saved else self


@dataclass(frozen=True)
class Basis:
    """What an estimate rests on besides the traces.

    `fixed` are the tokens of each stage's prompt around its evidence, with an empty playbook; `bullets` those of the
    playbook's bullets at the start. `limit` is the most input tokens of a call. `fit` is a curve of delays, measured in
    the run `measured_in`. `counted` where the model's own tokenizer counts, else tokens are estimated from bytes.
    """

    settings: RunSettings = field(default_factory=RunSettings)
    experience: Experience = ASSUMED
    fixed: Mapping[str, int] = field(default_factory=dict)
    bullets: float = 0.0
    prices: Prices | None = None
    limit: int | None = None
    fit: Fit | None = None
    measured_in: str = ""
    counted: bool = False

    def weighing(self, trace: int) -> Basis:
        """The same with traces of so many tokens, as somebody has said: neither observed nor assumed."""
        return replace(self, experience=self.experience.model_copy(update={"trace": float(trace)}))


class Estimate(Noun):
    """What is to be expected without faults, retries and slow calls sent twice.

    `cost` is in US dollars, None where the price is unknown. `hours` counts the slowest call of every stage,
    `hours_at_least` would do if all took the same time. `split` are curate calls more than there are groups, because a
    group is too large for one call; `too_large` traces do not fit into a call by themselves. `bullets` are the tokens
    of the playbook's bullets afterwards.
    """

    traces: int = 0
    batches: int = 0
    calls: dict[str, Count] = Field(default_factory=lambda: dict.fromkeys(STAGES, Count()))
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    hours: float = 0.0
    hours_at_least: float = 0.0
    split: int = 0
    too_large: int = 0
    bullets: float = 0.0

    def times(self, number: int) -> Estimate:
        """So many times this work, as if nothing grew."""
        return self.model_copy(
            update={
                "calls": {stage: count.times(number) for stage, count in self.calls.items()},
                "cost": None if self.cost is None else self.cost * number,
                **{name: getattr(self, name) * number for name in _SUMS},
            }
        )

    def plus(self, other: Estimate) -> Estimate:
        """This work and then the other."""
        known = self.cost is not None and other.cost is not None
        return Estimate(
            calls={stage: self.calls[stage].plus(other.calls[stage]) for stage in STAGES},
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            bullets=other.bullets,
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMS},
        )


_SUMS = ("traces", "batches", "input_tokens", "output_tokens", "hours", "hours_at_least", "split", "too_large")


@dataclass
class _Sum:
    """Figures that add up batch by batch; rounded at the end, so that shares of calls are not lost."""

    bullets: float
    traces: int = 0
    batches: int = 0
    least: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    likely: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    most: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    unbounded: set[str] = field(default_factory=set)
    read: float = 0.0
    written: float = 0.0
    seconds: float = 0.0
    seconds_at_least: float = 0.0
    split: float = 0.0
    too_large: int = 0

    def counts(self) -> dict[str, Count]:
        def count(stage: str) -> Count:
            most = None if stage in self.unbounded else round(self.most[stage])
            return Count(at_least=round(self.least[stage]), expected=round(self.likely[stage]), at_most=most)

        return {stage: count(stage) for stage in STAGES}


def estimate(loads: Iterable[Load], basis: Basis) -> Estimate:
    """The cost of batches that follow each other, each with the playbook that those before it have left."""
    total = _Sum(basis.bullets)
    for load in loads:
        _add(total, load, basis)
    return Estimate(
        traces=total.traces,
        batches=total.batches,
        calls=total.counts(),
        input_tokens=round(total.read),
        output_tokens=round(total.written),
        cost=_cost(total.read, total.written, basis),
        hours=total.seconds / 3600,
        hours_at_least=total.seconds_at_least / 3600,
        split=round(total.split),
        too_large=total.too_large,
        bullets=total.bullets,
    )


def _add(total: _Sum, load: Load, basis: Basis) -> None:
    """One load, and the playbook that it leaves."""
    experience, times = basis.experience, load.times
    # A load of many batches is taken with the playbook that the one in the middle would read.
    bullets = experience.grown(total.bullets, experience.share * load.size * (times - 1) / 2)
    asked = list(_map_stages(load, basis, bullets))
    reflected = load.saved + next(stage.calls for stage in asked if stage.name == "reflect")
    weights = Weights(basis.settings, experience, basis.fixed, bullets, basis.limit)
    curate, merge, split = expected_reduce(experience.share * reflected, weights)
    stages = [*asked, curate, merge]
    for stage in stages:
        total.likely[stage.name] += stage.calls * times
        total.read += stage.read * times
        total.written += stage.written * times
    _bound(total, asked, int(reflected), basis.settings, times)
    total.split += split * times
    total.too_large += (load.size - int(reflected)) * times
    total.seconds += _seconds(stages, load, basis, SPREAD) * times
    total.seconds_at_least += _seconds(stages, load, basis, 0.0) * times
    total.traces += load.size * times
    total.batches += times
    total.bullets = experience.grown(total.bullets, experience.share * reflected * times)


def _map_stages(load: Load, basis: Basis, bullets: float) -> Iterator[Stage]:
    """Rollout and reflect: a call for each trace that is not too large for one."""
    experience = basis.experience
    solved = [size for size in load.samples if _fits("rollout", size, basis, bullets)]
    yield _stage("rollout", solved, experience.rollout, basis, bullets)
    sizes = [*load.traces, *(round(size + experience.rollout + _OUTCOME) for size in solved)]
    shown = [size for size in sizes if _fits("reflect", size, basis, bullets)]
    yield _stage("reflect", shown, experience.reflection, basis, bullets)


def _stage(name: str, sizes: list[int], written: float, basis: Basis, bullets: float) -> Stage:
    around = basis.fixed.get(name, 0) + bullets
    return Stage(name, len(sizes), sum(sizes) + len(sizes) * around, len(sizes) * written)


def _fits(name: str, size: int, basis: Basis, bullets: float) -> bool:
    return size <= room(basis.limit, basis.fixed.get(name, 0) + bullets)


def _bound(total: _Sum, asked: list[Stage], reflections: int, settings: RunSettings, times: int) -> None:
    """Each trace is asked about once; of the rest as many as there are if all of them teach something."""
    for stage in asked:
        total.least[stage.name] += stage.calls * times
        total.most[stage.name] += stage.calls * times
    curate, merge = reduce_calls((reflections,), settings)
    total.most["curate"] += curate * times
    total.most["merge"] += (merge or 0) * times
    total.unbounded |= {"merge"} if merge is None else set()


def _seconds(stages: list[Stage], load: Load, basis: Basis, spread: float) -> float:
    """By the measured curve, where there is one and nothing of the batch is done; else call by call."""
    model = basis.settings.model
    computed = batch_seconds(stages, model, basis.experience.pace, spread)
    if basis.fit is None or load.saved or not load.size:
        return computed
    return expected_delay(basis.fit, load.size)


def _cost(read: float, written: float, basis: Basis) -> float | None:
    """In US dollars; None where nobody knows the prices, unless nothing is bought."""
    if basis.prices is None:
        return None if read or written else 0.0
    cached = round(read * basis.experience.cached)
    usage = Usage(input_tokens=round(read), output_tokens=round(written), cached_tokens=cached)
    return basis.prices.cost(usage)
