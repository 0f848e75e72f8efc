"""Trace formats: each module here that has a `READER` (a `combee_core.ports.TraceReader`) is one."""

from __future__ import annotations

import importlib
import pkgutil

from combee_core.ports import TraceReader


def readers() -> tuple[TraceReader, ...]:
    """Every format of this package, sorted by name; a `fallback` is asked last."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    known: list[TraceReader] = [module.READER for module in modules if hasattr(module, "READER")]
    return tuple(sorted(known, key=lambda reader: (reader.fallback, reader.name)))
