"""The source's runs or samples, read once for each flow run."""

from __future__ import annotations

from functools import lru_cache

from combee_core.adapters.inputs import Input, load_input
from combee_core.config import Source


def read_input(source: Source) -> Input:
    """The input, as it was when this flow run first asked for it."""
    return _read(source.model_dump_json())


def forget_input() -> None:
    """Let the next flow run of this process read anew."""
    _read.cache_clear()


@lru_cache(maxsize=1)
def _read(source: str) -> Input:
    return load_input(Source.model_validate_json(source))
