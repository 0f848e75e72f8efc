"""The source's runs or samples, read once for each flow run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import lru_cache

from combee_core.adapters.inputs import Input, load_days, load_input
from combee_core.config import Source


def read_input(source: Source) -> Input:
    """The input, as it was when this flow run first asked for it."""
    held = _days(_dayless(source)).get(source.day) if source.day else None
    return held or _read(source.model_dump_json())


def read_days(source: Source, first: date, last: date) -> Mapping[date, Input]:
    """The input of each day from `first` to `last`, read together; `read_input` gives out the same."""
    held = _days(_dayless(source))
    if not {first, last} <= held.keys():
        held |= load_days(source, first, last)
    return held


def forget_input() -> None:
    """Let the next flow run of this process read anew."""
    _read.cache_clear()
    _days.cache_clear()


@lru_cache(maxsize=1)
def _read(source: str) -> Input:
    return load_input(Source.model_validate_json(source))


@lru_cache(maxsize=1)
def _days(source: str) -> dict[date, Input]:
    """The days of this source that were read together; filled by `read_days`."""
    return {}


def _dayless(source: Source) -> str:
    return source.model_copy(update={"day": None}).model_dump_json()
