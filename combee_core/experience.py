"""What traces, reflections and operations weigh: observed in earlier runs, or assumed and said so."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from combee_core.base import Noun, is_simulated

_LAW = 0.67
"""Insights repeat: a playbook grows with this power of their number. Measured in the simulated world, between 100 and
400 insights of 120 rules."""


class Experience(Noun):
    """Means over earlier runs; the defaults are assumptions. Figures are tokens, where nothing else is said.

    `runs` are the runs that were looked at, `observed` the names of the fields that come from them. `share` is that of
    reflections with an insight, `trace` what a reflection reads of a trace, `reflection` what it writes, `entry` what a
    curator reads of it, `operation` what an operation takes, written or read. `merges` are merge calls for each insight
    where texts that are alike are merged. `growth` is what the playbook grows by with the first insight. `pace` is by
    what factor calls are slower than the paper's. `cached` is the share of the input that the provider has read before.
    """

    runs: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    share: float = 1.0
    trace: float = 2000.0
    rollout: float = 350.0
    reflection: float = 350.0
    entry: float = 200.0
    operation: float = 60.0
    merges: float = 0.15
    growth: float = 80.0
    pace: float = 1.0
    cached: float = 0.0

    def grown(self, bullets: float, insights: float) -> float:
        """Tokens of the bullets of a playbook that had `bullets` and has learned `insights` more."""
        return float((bullets ** (1 / _LAW) + insights * self.growth ** (1 / _LAW)) ** _LAW)

    def said(self, about: Collection[str]) -> Iterator[str]:
        """What was observed and what is assumed of the figures in `about`, a sentence each."""
        told = {name: clause.format(self._shown(name)) for name, clause in _CLAUSES.items() if name in about}
        seen = "; ".join(text for name, text in told.items() if name in self.observed)
        if seen:
            yield f"observed in {len(self.runs)} earlier run{'s' if len(self.runs) > 1 else ''}: {seen}"
        assumed = "; ".join(text for name, text in told.items() if name not in self.observed)
        if assumed:
            yield f"assumed: {assumed}"

    def _shown(self, name: str) -> float:
        figure: float = getattr(self, name)
        return figure * 100**_LAW if name == "growth" else figure


_CLAUSES = {
    "share": "{:.0%} of the traces teach something",
    "trace": "a trace has {:,.0f} tokens",
    "rollout": "an agent's answer has {:,.0f} tokens",
    "reflection": "a reflection has {:,.0f} tokens",
    "entry": "a curator reads {:,.0f} of them",
    "operation": "an operation has {:,.0f} tokens",
    "merges": "{:.2f} merge calls for each insight where clusters are merged",
    "growth": "a playbook of 100 insights has {:,.0f} tokens",
    "cached": "{:.0%} of the input comes from the provider's cache",
}


def growth_of(before: float, after: float, insights: float) -> float:
    """The `growth` with which so many insights make bullets of `after` tokens out of those of `before`."""
    added = max(0.0, after ** (1 / _LAW) - before ** (1 / _LAW))
    return float((added / insights) ** _LAW)


ASSUMED = Experience()
"""For a model of which nothing is known: traces as 100 real runs of tau-bench have them (median 1,883 tokens), the rest
by the answers' forms."""

STAND_IN = Experience(trace=100.0, rollout=60.0, reflection=82.0, entry=49.0, operation=50.0, merges=0.11, growth=62.0)
"""Measured on the simulated model."""


def assumed_for(model: str) -> Experience:
    """What is assumed before the first run with a model."""
    return STAND_IN if is_simulated(model.removeprefix("openai/")) else ASSUMED
