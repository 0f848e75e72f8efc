"""A run configuration, setting by setting: what it is, where it comes from, what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from combee_core.base import Noun
from combee_core.run_file import Path, RunFile, table_of


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


def lines(settings: Sequence[Explained]) -> Iterator[str]:
    """For a terminal: a heading for each table, saying what it is about, and a line for each setting."""
    rows = [(one.path[-1], _said(one.value), "given" if one.given else "default") for one in settings]
    widths = [min(max(len(row[column]) for row in rows), 32) for column in range(3)]
    about = dict(_tables(RunFile))
    table: Path = ()
    for one, row in zip(settings, rows, strict=True):
        if one.path[:-1] != table:
            table = one.path[:-1]
            yield f"\n[{'.'.join(table)}]  {about[table]}"
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{'  '.join(cells)}  {one.description}".rstrip()


def _tables(noun: type[Noun], path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every table, with what it is about."""
    for name, field in noun.model_fields.items():
        if inner := table_of(field.annotation):
            yield (*path, name), field.description or ""
            yield from _tables(inner, (*path, name))


def _said(value: Any) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
