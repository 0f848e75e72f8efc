"""What a night of growth.py took, and the picture of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CPU, PEAK, TASKS, FLAT = 15.0, 1_024.0, 2_000, 1.25
"""Milliseconds a trace, MiB, task runs of a flow run, and how far CPU a trace may be apart."""
STYLES = {
    "inprocess": ("model in the process", "#4c78a8", "o"),
    "http": ("model over HTTP", "#f58518", "s"),
    "s3": ("store on S3", "#54a24b", "D"),
    "auto": ("model in the process, batch size auto", "#b279a2", "^"),
}
"""Of each case in the picture: label, colour, mark."""


@dataclass(frozen=True)
class Grown:
    """What one case took. `cpu` and `stand_in` are seconds, `peak` is in MiB; tasks are task runs."""

    case: str
    traces: int
    wall: float
    cpu: float
    stand_in: float
    start: float
    peak: float
    calls: int
    flow_runs: int
    tasks: int
    recorded: int
    most_tasks: int
    bullets: int
    batch_size: int

    @property
    def cpu_own(self) -> float:
        """Seconds of CPU of the flow process, the stand-in's apart."""
        return self.cpu - self.stand_in

    @property
    def cpu_each(self) -> float:
        """Milliseconds of CPU of the flow process a trace, the stand-in's apart."""
        return 1_000 * self.cpu_own / self.traces


def drawn(cases: Sequence[Grown]) -> Figure:
    """CPU a trace, peak memory and wall time over the number of traces."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    cpu, peak, wall = figure.subplots(1, 3)
    _lines(cpu, cases, "CPU of the flow process a trace (ms)", [grown.cpu_each for grown in cases], CPU)
    _lines(peak, cases, "peak memory of the flow process (MiB)", [grown.peak for grown in cases], PEAK)
    _lines(wall, cases, "wall time a trace (ms)", [1_000 * grown.wall / grown.traces for grown in cases])
    figure.legend(*wall.get_legend_handles_labels(), loc="outside lower center", ncols=len(STYLES), frameon=False)
    return figure


def _lines(axes: Axes, cases: Sequence[Grown], title: str, values: Sequence[float], limit: float | None = None) -> None:
    for case, (label, colour, mark) in STYLES.items():
        at = [place for place, grown in enumerate(cases) if grown.case == case]
        if at:
            x, y = [cases[place].traces for place in at], [values[place] for place in at]
            axes.plot(x, y, color=colour, marker=mark, label=label)
    if limit:
        axes.axhline(limit, color="#e45756", linewidth=1.2)
        axes.annotate(
            f"limit {limit:,.0f}", (0.02, limit), xycoords=("axes fraction", "data"), va="bottom", color="#e45756"
        )
    axes.set(xscale="log", xlabel="traces", title=title, ylim=(0, 1.12 * max([*values, limit or 0])))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.title.set_fontsize(9)
