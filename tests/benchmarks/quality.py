"""What survives the reduce, at which price, as a batch grows: the share of distinct rules that reach the playbook.

    python tests/benchmarks/quality.py [--quick] [--seeds 20] [--processes 2]

One batch of n reflections, each of them a failure that states one of n/2 rules (Zipf .8) in one of three wordings,
goes through every form of the reduce with the simulated model: its curator follows figure 2 of the Combee paper, its
merger is an assumption of ours, so that all is measured with half of it and without it too. Tokens are input and
output; what all calls of a stage begin with (the system message) counts a tenth, as cached input does.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import comb, sqrt
from typing import Any

import pandas as pd
from common import AT_LEAST, picture, save

from combee_core.adapters.memory_store import MemoryStore
from combee_core.base import estimate
from combee_core.calls import Receipt
from combee_core.client import Client
from combee_core.clustering import ALIKE, clusters
from combee_core.conclude import Results
from combee_core.config import ModelSettings, RunSettings
from combee_core.inline import Inline
from combee_core.learners import load_learner
from combee_core.saving import SavedAnswers
from combee_core.shuffle import copies_of
from combee_core.simulation.model import SimulatedModel
from combee_core.simulation.overload import Merger, merged, merged_freely, merged_half
from combee_core.simulation.specifics import Specific, stated_in
from combee_core.simulation.world import World
from combee_core.survival import survival
from combee_core.types import Group, Operation, OperationKind, Outcome, Reflected, Reflection

ACE = load_learner("ace")
EMPTY = ACE.empty()
SIZES = (40, 100, 400, 1_000, 10_000)
AT = 1_000
"""The size of batch at which group sizes are compared."""
GROUPS = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20)
RULES = (120, 1_000, 5_000)
CACHED = 0.1
"""What cached input costs beside other input."""

NAIVE, PAPER, SPREAD, LEVELS = "naive", "paper", "spread", "three levels"
BOUNDED, CLUSTER = "bounded + paper merge", "bounded + cluster"
FORMS = (NAIVE, PAPER, SPREAD, LEVELS, BOUNDED, CLUSTER)
AS_ASSUMED = "as assumed"
MERGERS: Mapping[str, Merger] = {AS_ASSUMED: merged, "half": merged_half, "no limit": merged_freely}


@dataclass(frozen=True)
class Row:
    """One form, once. `survival` is a share of the rules that the batch's reflections state; calls and tokens of
    curating and merging are those of one reflection."""

    form: str
    merger: str
    n: int
    copies: int
    max_group: int
    seed: int
    curated: float
    survival: float
    calls: float
    tokens: float


# one batch


def settings_of(form: str, copies: int, max_group: int) -> RunSettings:
    """A form of the reduce; the group size and the copies are those of bounded groups, the paper's has two copies."""
    changes: dict[str, Any] = {
        SPREAD: {"shuffle": "spread"},
        LEVELS: {"levels": 3},
        BOUNDED: {"grouping": "bounded", "copies": copies, "max_group": max_group},
        CLUSTER: {"grouping": "bounded", "merge": "cluster", "copies": copies, "max_group": max_group},
    }
    return RunSettings(**{"grouping": "paper", "merge": "paper", "copies": 2, **changes.get(form, {})})


def reflections(n: int, seed: int) -> list[Reflected]:
    """A batch in which everything failed."""
    world = World(seed, n // 2)
    made = []
    for sample in world.sample(n, seed, "t"):
        (stated,) = stated_in(world.score(sample, "wrong").feedback)
        outcome = Outcome(score=0.0, label="wrong", source="ground_truth")
        reflection = Reflection(trace_id=sample.id, key_insight=stated.words, outcome=outcome)
        made.append(Reflected(trace_id=sample.id, fate="insight", reflection=reflection))
    return made


def tell(text: str) -> set[Specific]:
    """The rules that a text states."""
    return {stated.specific for stated in stated_in(text)}


@dataclass
class Bench:
    """One batch under every form; calls that several forms share are made once and counted for each."""

    n: int
    seed: int

    def __post_init__(self) -> None:
        self.batch = reflections(self.n, self.seed)
        self._stores = {name: MemoryStore(uuid.uuid4().hex) for name in MERGERS}

    def forms(self, copies: int, max_group: int) -> Iterator[Row]:
        """All forms and mergers."""
        for form in FORMS:
            settings = settings_of(form, copies, max_group)
            results = asyncio.run(self._inline(settings, AS_ASSUMED, form == NAIVE).reduce(self.batch, 1, EMPTY))
            for merger in MERGERS:
                yield self._row(form, merger, settings, asyncio.run(self._merged(results, settings, merger)))

    def groups(self) -> Iterator[Row]:
        """Bounded groups of every size, with one copy and with two."""
        for max_group in GROUPS:
            for copies in (1, 2):
                settings = settings_of(CLUSTER, copies, max_group)
                results = asyncio.run(self._inline(settings, AS_ASSUMED).reduce(self.batch, 1, EMPTY))
                yield self._row(CLUSTER, AS_ASSUMED, settings, results)

    async def _merged(self, results: Results, settings: RunSettings, merger: str) -> Results:
        """The same groups' operations, merged by another merger."""
        if merger == AS_ASSUMED:
            return results
        again = await self._inline(settings, merger).merge(results.curated, EMPTY)
        return Results((), results.reflected, results.groups, results.curated, again)

    def _inline(self, settings: RunSettings, merger: str, naive: bool = False) -> Inline:
        model = SimulatedModel(merger=MERGERS[merger])
        client = Client(model, SavedAnswers(self._stores[merger]), ModelSettings(concurrency=64), ACE.fingerprint)
        settings = settings.model_copy(update={"seed": self.seed})
        return Inline(ACE, client, settings, World(self.seed).score, naive=naive)

    def _row(self, form: str, merger: str, settings: RunSettings, results: Results) -> Row:
        levels = survival(results.insights, results.levels, tell=tell)
        receipts = [*results.merged.receipts, *(receipt for one in results.curated for receipt in one.receipts)]
        return Row(
            form=form,
            merger=merger,
            n=self.n,
            copies=settings.copies,
            max_group=settings.max_group,
            seed=self.seed,
            curated=levels[0].share,
            survival=levels[-1].share,
            calls=len(receipts) / self.n,
            tokens=sum(map(tokens, receipts)) / self.n,
        )


def tokens(receipt: Receipt) -> float:
    """What a call counts, its system message as cached input."""
    usage = receipt.usage
    return (usage.input_tokens or 0) - (1 - CACHED) * PREFIX[receipt.stage] + (usage.output_tokens or 0)


def _prefixes() -> dict[str, int]:
    group = Group(number=1, of=1, entries=(Reflection(trace_id="t", key_insight="x"),))
    questions = (ACE.curate(EMPTY, group), ACE.merge(EMPTY, [Operation(kind=OperationKind.ADD, text="x")]))
    return {q.prompt.stage: estimate(q.prompt.messages[0].content) for q in questions}


PREFIX = _prefixes()


# all batches


def forms(n: int, copies: int, max_group: int, seed: int) -> list[Row]:
    """One process' share of the forms."""
    return list(Bench(n, seed).forms(copies, max_group))


def groups(seed: int) -> list[Row]:
    """One process' share of the group sizes."""
    return list(Bench(AT, seed).groups())


def measured(
    seeds: int, sizes: Sequence[int], processes: int, copies: int, max_group: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The forms by size of batch, and bounded groups by size."""
    numbers = range(1, seeds + 1)
    with ProcessPoolExecutor(processes) as pool:
        asked = [pool.submit(forms, n, copies, max_group, seed) for n in sorted(sizes)[::-1] for seed in numbers]
        also = [pool.submit(groups, seed) for seed in numbers]
        by_form, by_size = ([row for done in futures for row in done.result()] for futures in (asked, also))
    return summed(by_form, ["form", "merger", "n"]), summed(by_size, ["copies", "max_group"])


def summed(rows: Sequence[Row], by: list[str]) -> pd.DataFrame:
    """Means over the seeds, with 95 % intervals of survival (Student)."""
    from scipy.stats import t

    grouped = pd.DataFrame(map(asdict, rows)).groupby(by, sort=False)
    table = grouped[["curated", "survival", "calls", "tokens"]].mean()
    seeds = grouped["survival"].count()
    half = t.ppf(0.975, seeds - 1) * grouped["survival"].std() / seeds.map(sqrt)
    table.insert(2, "low", table["survival"] - half)
    table.insert(3, "high", table["survival"] + half)
    return table.assign(seeds=seeds).reset_index()


def bars(forms: pd.DataFrame) -> pd.DataFrame:
    """What bounded groups and clusters must keep; only for the sizes that were measured."""
    ours = forms[(forms["form"] == CLUSTER) & (forms["merger"] == AS_ASSUMED)].set_index("n")
    large, flat = ours.loc[ours.index.max()], ours.loc[ours.index >= 400, "survival"]
    limits = [
        (f"survival at {ours.index.max()}", large["survival"], 0.75, AT_LEAST),
        (f"calls a reflection at {ours.index.max()}", large["calls"], 0.35, "at most"),
        ("survival from 400 on: largest less smallest", flat.max() - flat.min(), 0.03, "at most"),
    ]
    return pd.DataFrame(
        [
            {"form": f"{CLUSTER}: {name}", "bar": bar, "limit": limit, "ratio": value / limit}
            for name, value, limit, bar in limits
        ]
    )


# the similarity that merging and survival share


def similarity(rules: int, seed: int = 0) -> dict[str, float]:
    """How well clusters of a world's wordings are its rules: over pairs, with the CPU seconds that they took."""
    texts = [(rule.wording(way), at) for at, rule in enumerate(World(seed, rules).specifics) for way in range(3)]
    random.Random(seed).shuffle(texts)
    began = time.process_time()
    found = clusters([text for text, _ in texts])
    seconds = time.process_time() - began
    together = sum(comb(len(group), 2) for group in found)
    right = 0
    for group in found:
        whose = [texts[at][1] for at in group]
        right += sum(comb(whose.count(rule), 2) for rule in set(whose))
    return {
        "rules": rules,
        "texts": len(texts),
        "clusters": len(found),
        "precision": right / together,
        "recall": right / (3 * rules),
        "wrong pairs in a million": 1e6 * (together - right) / (comb(len(texts), 2) - 3 * rules),
        "cpu seconds": seconds,
    }


# pictures


def drawn(forms: pd.DataFrame, groups: pd.DataFrame) -> Any:
    """Survival by size of batch, under other assumptions on the merger, and against calls."""
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    for form, rows in forms[forms["merger"] == AS_ASSUMED].groupby("form", sort=False):
        _line(left, rows, str(form))
    left.set_title("Every form")
    styles = dict(zip(MERGERS, ("-", "--", ":"), strict=True))
    for (form, merger), rows in forms[forms["form"].isin([PAPER, CLUSTER])].groupby(["form", "merger"], sort=False):
        colour = "tab:orange" if form == PAPER else "tab:brown"
        _line(middle, rows, f"{form}, merger {merger}", color=colour, linestyle=styles[str(merger)])
    middle.set_title("Another merger than assumed")
    for axes in (left, middle):
        axes.set(xscale="log", ylim=(0, 1.02), xlabel="reflections in one batch", ylabel="distinct rules that survive")
        axes.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
        axes.minorticks_off()
        axes.legend(fontsize=7, loc="center right", bbox_to_anchor=(1, 0.7))
    for copies, rows in groups.groupby("copies"):
        right.errorbar(
            rows["calls"], rows["survival"], rows["high"] - rows["survival"], fmt="o-", label=f"copies {copies}"
        )
        for row in rows.itertuples():
            right.annotate(
                f"{row.max_group}", (row.calls, row.survival), (3, -11), textcoords="offset points", fontsize=8
            )
    right.set(
        title=f"Groups of at most …, n = {AT:,}",
        xlabel="curate and merge calls a reflection",
        ylabel="distinct rules that survive",
    )
    right.axvline(0.35, color="grey", linewidth=0.8, linestyle=":")
    right.legend(fontsize=8)
    return figure


def _line(axes: Any, rows: pd.DataFrame, label: str, **style: Any) -> None:
    (line,) = axes.plot(rows["n"], rows["survival"], marker="o", markersize=4, label=label, **style)
    axes.fill_between(rows["n"], rows["low"], rows["high"], color=line.get_color(), alpha=0.2, linewidth=0)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three seeds, batches up to 1,000")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--copies", type=int, default=copies_of(RunSettings(), bounded=True), help="of bounded groups")
    parser.add_argument("--max-group", type=int, default=RunSettings().max_group, help="of bounded groups")
    given = parser.parse_args()
    seeds, sizes = (3, SIZES[:-1]) if given.quick else (given.seeds, SIZES)
    began = time.monotonic()
    by_form, by_size = measured(seeds, sizes, given.processes, given.copies, given.max_group)
    notes = {"seeds": seeds, "copies": given.copies, "max_group": given.max_group, "alike": ALIKE}
    listed = by_form.sort_values(["merger", "form", "n"], key=_as_listed)
    save("quality", pd.concat([listed, bars(by_form)]).astype({"n": "Int64", "seeds": "Int64"}), notes)
    save("quality-groups", by_size.sort_values(["copies", "max_group"]), {"seeds": seeds, "n": AT})
    save("quality-similarity", pd.DataFrame([similarity(rules) for rules in RULES]), {"alike": ALIKE})
    if not given.quick:
        picture("quality", drawn(by_form, by_size))
    print(f"{time.monotonic() - began:.0f} s")


def _as_listed(column: pd.Series[Any]) -> pd.Series[Any]:
    order = [*FORMS, *MERGERS]
    return column.map(order.index) if column.name != "n" else column


if __name__ == "__main__":
    main()
