"""Real traces, playbooks and data sets: in the folder COMBEE_REAL_DATA, else in `shared` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("COMBEE_REAL_DATA") or Path(__file__).parents[2] / "shared")
TRACES = SHARED / "traces"
TAU_BENCH = TRACES / "tau_bench"
AIRLINE = TAU_BENCH / "gpt-4o-airline-even-tasks.json"
PLAYBOOKS = SHARED / "playbooks"
DATASETS = SHARED / "datasets"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skip a test where the path is not there."""
    return pytest.mark.skipif(not path.exists(), reason="real traces are not here: set COMBEE_REAL_DATA")
