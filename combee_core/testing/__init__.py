"""Public fakes: models that do what a test says, for the tests of this project and of those who build on it.

Stores need no fake: `combee_core.adapters.memory_store.MemoryStore` keeps the contract in memory.
"""

from __future__ import annotations

from combee_core.testing.flaky import FlakyModel
from combee_core.testing.scripted import ScriptedModel

__all__ = ["FlakyModel", "ScriptedModel"]
