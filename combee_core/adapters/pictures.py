"""The controller's curve as a picture: PNG or SVG, the same bytes for the same decision."""

from __future__ import annotations

import textwrap
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from combee_core.charts import extent, time_unit
from combee_core.errors import UsageError
from combee_core.fitting import epoch_seconds, epoch_time, peak_slope
from combee_core.sizes import Decision, Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["png", "svg"]

_INK, _CURVE, _CHOICE, _FAINT = "#22313f", "#2a6f97", "#c8553d", "#8a97a3"
_METADATA: dict[Kind, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "combee",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _FAINT,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def fit_picture(decision: Decision, kind: Kind) -> bytes:
    """Points, fitted curve, the tangents at its steepest place and at the plateau, and the choice, about 900 px wide.

    Raises `UsageError` where matplotlib is missing.
    """
    try:
        import matplotlib.style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("pictures need matplotlib: pip install 'combee-pipeline[pipeline]'") from error
    out = BytesIO()
    with matplotlib.style.context(["default", _STYLE]):
        figure = Figure(figsize=(9, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.add_subplot(), decision)
        figure.savefig(out, format=kind, dpi=100, metadata=_METADATA[kind])
    return out.getvalue()


def _draw(axes: Axes, decision: Decision) -> None:
    right, top = extent(decision)
    unit, name = time_unit(top)
    axes.set(xlim=(0, right), ylim=(0, top / unit), xlabel="batch size (traces or samples)")
    axes.set_ylabel(f"time of an epoch of {decision.total} ({name})")
    axes.grid(color=_FAINT, alpha=0.2)
    if decision.fit:
        _draw_curve(axes, decision.fit, right, unit)
        _draw_tangents(axes, decision, decision.fit, unit)
    _draw_points(axes, decision, unit)
    _draw_choice(axes, decision, right, unit)
    _write_title(axes, decision)
    axes.legend(loc="upper right" if decision.plateau else "best", frameon=True, edgecolor="none", framealpha=0.9)


def _write_title(axes: Axes, decision: Decision) -> None:
    reason = textwrap.wrap(decision.reason, 120)
    title = f"Batch size {decision.batch_size}"
    axes.set_title(title, loc="left", fontweight="bold", fontsize=12, pad=8 + 13 * len(reason))
    text = axes.text(0, 1.02, "\n".join(reason), transform=axes.transAxes, fontsize=9, va="bottom", parse_math=False)
    text.set_in_layout(False)


def _draw_curve(axes: Axes, fit: Fit, right: float, unit: float) -> None:
    sizes = [fit.smallest + (right - fit.smallest) * i / 400 for i in range(401)]
    times = [epoch_seconds(fit, size) / unit for size in sizes]
    label = f"fitted: A · size$^{{-{fit.alpha:.2f}}}$, R² {fit.r_squared:.2f}" + (", robust" if fit.robust else "")
    axes.plot(sizes, times, color=_CURVE, linewidth=2, label=label, zorder=3)


def _draw_tangents(axes: Axes, decision: Decision, fit: Fit, unit: float) -> None:
    """Both slopes where they hold; none where the choice does not come from the curve's slope."""
    if decision.plateau is None:
        return
    peak = peak_slope(fit, decision.peak)
    steepest = "steepest slope" if decision.peak == "fit" else "largest measured slope"
    _draw_slope(axes, (fit.smallest, epoch_seconds(fit, fit.smallest)), peak, unit)
    axes.lines[-1].set(label=steepest, linestyle=":")
    _draw_slope(axes, (decision.plateau, epoch_seconds(fit, decision.plateau)), decision.tau * peak, unit)
    axes.lines[-1].set(label=f"{100 * decision.tau:.1f} % of it, at {decision.plateau:.1f}")


def _draw_slope(axes: Axes, at: tuple[float, float], slope: float, unit: float) -> None:
    size, seconds = at
    axes.axline((size, seconds / unit), slope=-slope / unit, color=_FAINT, linewidth=1.4, linestyle="--", zorder=2)


def _draw_points(axes: Axes, decision: Decision, unit: float) -> None:
    sizes = [point.batch_size for point in decision.points]
    times = [epoch_time(decision.total, point) / unit for point in decision.points]
    halves = [time * point.spread / 2 for time, point in zip(times, decision.points, strict=True)]
    bars = halves if any(halves) else None
    axes.errorbar(sizes, times, yerr=bars, fmt="o", color=_INK, markersize=6, capsize=3, label="measured", zorder=4)


def _draw_choice(axes: Axes, decision: Decision, right: float, unit: float) -> None:
    size = decision.batch_size
    seconds = epoch_seconds(decision.fit, size) if decision.fit else 0.0
    if size > right:
        axes.plot([], [], "D", color=_CHOICE, label=f"chosen: {size}, further right")
        return
    axes.axvline(size, ymax=seconds / unit / axes.get_ylim()[1] or 1.0, color=_CHOICE, linewidth=1.2, zorder=2)
    axes.plot([size], [seconds / unit], "D", color=_CHOICE, markersize=9, zorder=5, label=f"chosen: {size}")
