"""The controller's curve as text for a terminal, and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from combee_core.fitting import epoch_seconds, epoch_time, peak_slope, slope_at
from combee_core.sizes import Decision, Point

FIT_COLUMNS = (
    "delay: of one batch; epoch: of all traces in batches of that size; fitted: the epoch by the curve; "
    "gain: what one trace more in a batch saves, in percent of the most that it ever does"
)
"""What the columns of `fit_table` are."""

_ROWS = 15
_LABEL = 10
_UNITS = ((3 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))


def time_unit(longest: float) -> tuple[float, str]:
    """The unit in which times up to `longest` seconds read well: its length in seconds and its name."""
    return next((seconds, name) for least, seconds, name in _UNITS if longest >= least)


def extent(decision: Decision) -> tuple[float, float]:
    """Where the axes of a chart end: the batch size, and the seconds of an epoch."""
    times = [epoch_time(decision.total, point) * (1 + point.spread / 2) for point in decision.points]
    measured = max((point.batch_size for point in decision.points), default=1)
    if decision.fit:
        times.append(epoch_seconds(decision.fit, decision.fit.smallest))
    # A choice far beyond the measurements would press all of them against the axis.
    right = max(measured, min(decision.batch_size, 5 * measured))
    return 1.06 * right, 1.08 * (max(times, default=0.0) or 1.0)


def fit_chart(decision: Decision, width: int = 72) -> str:
    """Points, curve and choice in `width` columns: seconds, minutes or hours of an epoch over the batch size."""
    if not decision.points:
        return "nothing was measured: there is no curve"
    canvas = _Canvas(decision, width)
    if decision.fit:
        for size in canvas.sizes():
            if size >= decision.fit.smallest:
                canvas.put(size, epoch_seconds(decision.fit, size), "·")
    canvas.rule(decision.batch_size)
    for point in decision.points:
        canvas.put(point.batch_size, epoch_time(decision.total, point), "●")
    if decision.fit:
        canvas.put(decision.batch_size, epoch_seconds(decision.fit, decision.batch_size), "◆")
    return "\n".join(line.rstrip() for line in canvas.lines(decision))


class _Canvas:
    """Cells of text, addressed by batch size and seconds."""

    def __init__(self, decision: Decision, width: int) -> None:
        self.right, self.top = extent(decision)
        self.columns = max(20, width - _LABEL - 2)
        self.cells = [[" "] * self.columns for _ in range(_ROWS)]

    def sizes(self) -> Iterator[float]:
        """The batch size in the middle of each column."""
        return ((column + 0.5) * self.right / self.columns for column in range(self.columns))

    def column(self, size: float) -> int:
        return int(size / self.right * self.columns)

    def put(self, size: float, seconds: float, mark: str) -> None:
        row, column = _ROWS - 1 - int(seconds / self.top * _ROWS), self.column(size)
        if 0 <= row < _ROWS and 0 <= column < self.columns:
            self.cells[row][column] = mark

    def rule(self, size: float) -> None:
        for row in self.cells:
            if self.column(size) < self.columns and row[self.column(size)] == " ":
                row[self.column(size)] = "╎"

    def lines(self, decision: Decision) -> Iterator[str]:
        seconds, unit = time_unit(self.top)
        yield f"{f'epoch, {unit}':>{_LABEL}}"
        for number, row in enumerate(self.cells):
            value = _figure(self.top * (1 - (number + 0.5) / _ROWS) / seconds) if number % 4 == 2 else ""
            yield f"{value:>{_LABEL}} ┤{''.join(row)}" if value else f"{'':>{_LABEL}} │{''.join(row)}"
        yield f"{'0':>{_LABEL}} └{'─' * self.columns}"
        yield f"{'':>{_LABEL}}  {self._ticks(decision)}"
        beyond = " (right of the picture)" if decision.batch_size > self.right else ""
        yield f"{'':>{_LABEL}}  batch size   ● measured   · fitted   ◆ chosen: {decision.batch_size}{beyond}"

    def _ticks(self, decision: Decision) -> str:
        line = ""
        for size in (point.batch_size for point in decision.points):
            start = self.column(size)
            if start > len(line) or not line:
                line = f"{line:<{start}}{size}"
        return line


def fit_table(decision: Decision) -> list[dict[str, str]]:
    """A row for each size that was measured, left out or chosen, smallest first; what is not known is an empty text.

    `gain` is the curve's slope in percent of the steepest: what one more trace in a batch still pays.
    """
    points = {point.batch_size: point for point in decision.points}
    rows = [(size, 0, _row(size, points.get(size), decision)) for size in {*points, decision.batch_size}]
    for number, aside in enumerate(decision.left_out, start=1):
        size = aside.what.removeprefix("size ")
        rows.append((int(size), number, _cells(size, note=f"left out: {aside.reason}")))
    return [row for *_, row in sorted(rows, key=lambda row: row[:2])]


def _row(size: int, point: Point | None, decision: Decision) -> dict[str, str]:
    measured = (point.delay, epoch_time(decision.total, point)) if point else (None, None)
    fitted, share = None, None
    if decision.fit:
        fitted = epoch_seconds(decision.fit, size)
        steepest = peak_slope(decision.fit, decision.peak)
        share = 100 * slope_at(decision.fit, size) / steepest if steepest > 0 else None
    return _cells(str(size), (*measured, fitted, share), "; ".join(_notes(size, point, decision)))


def _cells(size: str, figures: tuple[float | None, ...] = (None, None, None, None), note: str = "") -> dict[str, str]:
    delay, measured, fitted, share = map(_figure, figures)
    return {
        "size": size,
        "delay (s)": delay,
        "epoch (s)": measured,
        "fitted (s)": fitted,
        "gain (%)": share,
        "note": note,
    }


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"


def _notes(size: int, point: Point | None, decision: Decision) -> Iterator[str]:
    if size == decision.batch_size:
        yield f"chosen ({decision.bound_by})"
    if point and point.observations > 1:
        yield f"median of {point.observations}, which spread over {100 * point.spread:.0f} %"
    if point and point.cold:
        yield "measured cold only"
