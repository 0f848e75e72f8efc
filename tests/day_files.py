"""Files of simulated runs."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World


def day_file(folder: Path, count: int) -> Path:
    """A file of `count` runs of one day."""
    path = folder / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), count, 0, date(2026, 3, 2)))
    return path
