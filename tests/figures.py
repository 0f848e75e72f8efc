"""Tables that a long test prints."""

from __future__ import annotations


class Figures:
    """A table that is printed when all its rows are there."""

    def __init__(self, title: str, *columns: str) -> None:
        self._title, self._rows = title, [columns]

    def add(self, *row: object) -> None:
        """One more row."""
        self._rows.append(tuple(map(str, row)))

    def show(self, total: str = "") -> None:
        """Print it, and below it what it adds up to."""
        widths = [max(map(len, column)) for column in zip(*self._rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in self._rows)
        print("\n".join(["\n", self._title, *(line.rstrip() for line in lines), *filter(None, [total])]))
