"""Combee: Map-Shuffle-Reduce for learning from agents' traces. The pure library; Prefect stays outside.

>>> import combee_core
>>> combee_core.parse("## OTHERS\\n[misc-00001] helpful=2 harmful=0 :: Round last.").find("misc-00001").helpful
2
"""

from __future__ import annotations

from combee_core.errors import CombeeError
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.playbook_text import parse, render
from combee_core.records import Accounting
from combee_core.shuffle import group_count, group_sizes
from combee_core.types import Outcome, Reflection, Sample, Trajectory

__all__ = [
    "Accounting",
    "Bullet",
    "CombeeError",
    "Outcome",
    "Playbook",
    "Reflection",
    "Sample",
    "Section",
    "Trajectory",
    "group_count",
    "group_sizes",
    "parse",
    "render",
]
