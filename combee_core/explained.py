"""A run configuration, setting by setting: what it is, where it comes from, what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from combee_core.base import Noun
from combee_core.run_file import Path, RunFile, table_of

_WIDEST = 32
"""Columns for a value."""

_NARROWEST = 40
"""Columns in which a description can still be read."""

_BELOW = " " * 4


class Explained(Noun):
    """One setting. `given` is False where the value is the default."""

    path: Path
    value: Any
    given: bool
    description: str

    @property
    def name(self) -> str:
        """`settings.model.timeout`."""
        return ".".join(self.path)


def explain(file: RunFile) -> tuple[Explained, ...]:
    """Every setting of a configuration, in the file's order, plain keys before tables."""
    return tuple(_settings(file, ()))


def _settings(noun: Noun, path: Path) -> Iterator[Explained]:
    fields = type(noun).model_fields
    plain = [name for name in fields if not table_of(fields[name].annotation)]
    values = noun.model_dump(mode="json", include=set(plain))
    for name in plain:
        given, description = name in noun.model_fields_set, fields[name].description or ""
        yield Explained(path=(*path, name), value=values[name], given=given, description=description)
    for name in fields:
        if table_of(fields[name].annotation):
            yield from _settings(getattr(noun, name), (*path, name))


def lines(settings: Sequence[Explained], width: int) -> Iterator[str]:
    """For a terminal of `width` columns: a heading for each table, an entry for each setting.

    What a setting means stands behind it where there is room, else below.
    """
    rows = [(one.path[-1], _said(one.value), "given" if one.given else "default") for one in settings]
    widths = [min(max(len(row[column]) for row in rows), _WIDEST) for column in range(3)]
    about = dict(_tables(RunFile))
    table: Path = ()
    for one, row in zip(settings, rows, strict=True):
        if one.path[:-1] != table:
            table = one.path[:-1]
            yield f"\n[{'.'.join(table)}]  {about[table]}"
        cells = (cell.ljust(wide) for cell, wide in zip(row, widths, strict=True))
        yield _entry("  ".join(cells), one.description, sum(widths) + 6, width)


def _entry(setting: str, description: str, column: int, width: int) -> str:
    if width - column < _NARROWEST:
        return f"{setting.rstrip()}\n{fill(description, width, initial_indent=_BELOW, subsequent_indent=_BELOW)}"
    if len(setting) + 2 > column:
        # A value that is wider than its column has what it means below it, in line with the others'.
        setting = f"{setting.rstrip()}\n{' ' * (column - 2)}"
    return f"{setting}  " + fill(description, width - column).replace("\n", f"\n{' ' * column}")


def _tables(noun: type[Noun], path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every table, with what it is about."""
    for name, field in noun.model_fields.items():
        if inner := table_of(field.annotation):
            yield (*path, name), field.description or ""
            yield from _tables(inner, (*path, name))


def _said(value: Any) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
