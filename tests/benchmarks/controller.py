"""The batch-size controller on known delay curves: what noise costs, and what tau and the candidates change.

    python tests/benchmarks/controller.py

Each of ten shapes of delay is measured once a candidate with lognormal noise, for twenty seeds. Regret is by how much
the true epoch time at the chosen size differs from that at the size which the same rule picks without noise, in either
direction. The same is shown, without a bar, with a first measurement that was cold and took twice as long: in a real
run the smallest candidate is measured on new connections. Time over the fastest size is what the rule gives away by
design: it stops where larger batches hardly pay.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

import common

from combee_core.batch_size import decide
from combee_core.config import Peak, SizeSettings
from combee_core.sizes import Decision, Observation

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Shape = Callable[[int], float]

TOTAL = 500
SEEDS = range(20)
NOISES = (0.1, 0.2, 0.3)
NOISE = 0.2
LIMIT = 0.10
COLD = 2.0
"""Times that a cold iteration takes as long as a warm one."""
PEAKS: tuple[Peak, ...] = ("fit", "difference")
TAUS = (0.008, 0.016, 0.032)
CANDIDATES = ((5, 10, 20, 40, 80), (5, 20, 80), (8, 16, 32, 64, 128), (10, 20, 40), (2, 4, 8, 16, 32))


def power(exponent: float) -> Shape:
    """A delay that grows with a power of the size, so that the epoch falls as size^-(1 - exponent)."""
    return lambda size: 20.0 * size**exponent


def stragglers(size: int) -> float:
    """The slowest of `size` lognormal calls of median 24 s and σ 0.5, and two of 26 s after it."""
    return 24.0 * math.exp(0.5 * math.sqrt(2 * math.log(size))) + 52.0


def limited(size: int) -> float:
    """Calls of 20 s in rounds of 16, then two more."""
    return 20.0 * math.ceil(size / 16) + 40.0


def groups(size: int) -> float:
    """One reflection, a curator that reads 2·√n entries, and a merge that reads √n lists."""
    return 24.0 + 6.0 * math.sqrt(size) + 3.0 * math.sqrt(size)


def overloaded(size: int) -> float:
    """Flat until the provider throttles beyond 50, then growing faster than the size."""
    return 60.0 if size <= 50 else 60.0 * (size / 50) ** 1.5


SHAPES: dict[str, Shape] = {
    "fixed cost": lambda size: 60.0,
    "fixed + linear": lambda size: 40.0 + 0.8 * size,
    "linear inefficiency": lambda size: 10.0 + 2.5 * size,
    "power 0.25": power(0.25),
    "power 0.36": power(0.36),
    "power 0.5": power(0.5),
    "straggler tail": stragglers,
    "limited concurrency": limited,
    "√n groups": groups,
    "throttled above 50": overloaded,
}


def epoch(shape: Shape, size: int) -> float:
    """True seconds of an epoch."""
    return shape(size) * TOTAL / size


def fastest(shape: Shape) -> float:
    """True seconds of an epoch at the best size that may be chosen."""
    return min(epoch(shape, size) for size in range(1, SizeSettings().cap + 1))


def choose(shape: Shape, settings: SizeSettings, noise: float, seed: int, *, cold: bool = False) -> Decision:
    """What the controller decides from one noisy iteration a candidate, the first of them cold or not."""
    rng = random.Random(f"{seed}")
    delays = [shape(size) * rng.lognormvariate(0, noise) for size in settings.candidates]
    seen = [Observation(batch_size=n, delay=delay) for n, delay in zip(settings.candidates, delays, strict=True)]
    if cold:
        seen[0] = Observation(batch_size=seen[0].batch_size, delay=COLD * delays[0], cold=True)
    return decide(seen, settings, TOTAL)


def regret(shape: Shape, chosen: int, ideal: int) -> float:
    """By what share the epoch differs from the ideal choice's."""
    return abs(epoch(shape, chosen) / epoch(shape, ideal) - 1)


def row(name: str, settings: SizeSettings, noise: float, cold: bool) -> dict[str, object]:
    """One shape over all seeds."""
    shape = SHAPES[name]
    ideal = choose(shape, settings, 0.0, 0).batch_size
    sizes = [choose(shape, settings, noise, seed, cold=cold).batch_size for seed in SEEDS]
    return {
        "shape": name,
        "noise": f"{noise:.0%}",
        "first": _first(cold),
        "ideal": ideal,
        "chosen": median(sizes),
        "least": min(sizes),
        "most": max(sizes),
        "regret": median(regret(shape, size, ideal) for size in sizes),
        "worst": max(regret(shape, size, ideal) for size in sizes),
        "over fastest": median(epoch(shape, size) / fastest(shape) for size in sizes),
    }


def regrets(noise: float, *, cold: bool = False) -> pandas.DataFrame:
    """A row for each shape, and one of all shapes and seeds together, which is the bar."""
    import pandas

    settings = SizeSettings()
    rows = [row(name, settings, noise, cold) for name in SHAPES]
    together = [
        regret(
            shape,
            choose(shape, settings, noise, seed, cold=cold).batch_size,
            choose(shape, settings, 0.0, 0).batch_size,
        )
        for shape in SHAPES.values()
        for seed in SEEDS
    ]
    middle = median(together)
    bar = {"ratio": middle / LIMIT, "limit": LIMIT} if noise == NOISE and not cold else {}
    whole = {"shape": "all", "noise": f"{noise:.0%}", "first": _first(cold)}
    rows.append({**whole, "regret": middle, "worst": max(together), **bar})
    return pandas.DataFrame(rows)


def _first(cold: bool) -> str:
    return "cold" if cold else "warm"


def choices() -> pandas.DataFrame:
    """The choice without noise as tau, the candidates and the peak vary; the default's time over the fastest size's."""
    import pandas

    return pandas.DataFrame(
        {"shape": name, "candidates": " ".join(map(str, candidates)), **_choices(shape, candidates)}
        for name, shape in SHAPES.items()
        for candidates in CANDIDATES
    )


def _choices(shape: Shape, candidates: tuple[int, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for peak in PEAKS:
        for tau in TAUS:
            settings = SizeSettings(candidates=candidates, tau=tau, peak=peak)
            found[f"{peak} {tau:.1%}"] = choose(shape, settings, 0.0, 0).batch_size
    default = choose(shape, SizeSettings(candidates=candidates), 0.0, 0).batch_size
    return {**found, "over fastest": epoch(shape, default) / fastest(shape)}


def draw(all_regrets: pandas.DataFrame, all_choices: pandas.DataFrame) -> Figure:
    """Regret by shape and noise; choice by shape and tau."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_regrets(left, all_regrets)
    _draw_choices(right, all_choices)
    left.set_yticks(range(len(SHAPES)), list(SHAPES))
    left.invert_yaxis()
    return figure


def _draw_regrets(axes: Axes, frame: pandas.DataFrame) -> None:
    for noise, offset, color in zip(NOISES, (-0.25, 0.0, 0.25), ("#a9c5d8", "#2a6f97", "#22313f"), strict=True):
        of_noise = frame[(frame["noise"] == f"{noise:.0%}") & (frame["shape"] != "all") & (frame["first"] == "warm")]
        places = [place + offset for place in range(len(of_noise))]
        axes.barh(places, 100 * of_noise["regret"], height=0.22, color=color, label=f"noise {noise:.0%}")
    axes.axvline(100 * LIMIT, color="#c8553d", linestyle="--", linewidth=1.2)
    axes.set(xlabel="median regret of the epoch time (%)", title="What noise costs")
    axes.legend(frameon=False, loc="upper right")


def _draw_choices(axes: Axes, frame: pandas.DataFrame) -> None:
    default = frame[frame["candidates"] == "5 10 20 40 80"]
    for tau, marker in zip(TAUS, ">o<", strict=True):
        axes.plot(
            default[f"fit {tau:.1%}"], range(len(default)), marker, color="#2a6f97", label=f"tau {tau:.1%}", alpha=0.8
        )
    axes.set(xlabel="batch size chosen without noise", xlim=(0, None), title="What tau changes")
    axes.grid(axis="y", alpha=0.2)
    axes.legend(frameon=False, loc="lower right")


def main() -> None:
    """Print and keep both tables, and the picture."""
    import pandas

    measured = [regrets(noise, cold=cold) for cold in (False, True) for noise in NOISES]
    all_regrets = pandas.concat(measured, ignore_index=True)
    all_choices = choices()
    bar = f"at a noise of {NOISE:.0%} with all candidates warm"
    common.save("controller", all_regrets, {"seeds": len(SEEDS), "total": TOTAL, "bar": bar})
    common.save("controller-choices", all_choices, {"total": TOTAL})
    common.picture("controller", draw(all_regrets, all_choices))


if __name__ == "__main__":
    main()
