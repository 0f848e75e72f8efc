"""A memory store whose objects are as old as a test wants them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from builders import ACE, add
from run_records import plan, states

from combee_core.adapters.memory_store import MemoryStore
from combee_core.playbook import Playbook
from combee_core.pruning import Gc, Pruned
from combee_core.publish import publish
from combee_core.records import RunResult
from combee_core.runs import Run
from combee_core.types import Update
from combee_core.versions import Version, Versions

NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)
BEFORE = NOW - timedelta(days=30)


@dataclass
class Calendar:
    """A memory store whose clock stands `days` before now."""

    days: float = 0
    store: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(uuid.uuid4().hex, lambda: NOW - timedelta(days=self.days))

    def put(self, days: float, *keys: str, data: bytes = b"12345") -> None:
        self.days = days
        for key in keys:
            assert self.store.create(key, data)

    def run(self, days: float, key: str, *, finished: bool = True) -> list[str]:
        """The records of a run without a version."""
        names = ["plan.json", "batch-0001.json", "state-0001.json", "state-0002.json", "flow-runs/f-" + key]
        keys = [f"runs/{key}/{name}" for name in [*names, *(["result.json"] if finished else [])]]
        self.put(days, *keys, f"flow-runs/f-{key}")
        return keys

    def night(self, days: float, key: str, text: str) -> Version:
        """A run that published, with all its records."""
        self.days = days
        versions = Versions(self.store, "p")
        latest = versions.latest()
        made = plan(key=key, base_version=latest.version if latest else 0)
        base = Playbook.model_validate(latest.state) if latest else None
        recorded = states(Update(operations=(add(text, "t01"),)), base=base, version=made.base_version + 1)
        run = Run(self.store, key)
        self.store.create(run.path("plan.json"), made.model_dump_json().encode())
        for state in recorded:
            run.save_state(state)
        version, _ = publish(made, recorded, versions, ACE, flow_run_id=f"f-{key}")
        assert version is not None
        run.finish(RunResult(playbook="p", version=version.version, digest=version.digest, run=key))
        return version

    def gc(self, *, dry: bool = False) -> Pruned:
        self.days = 0
        return Gc(self.store, BEFORE, dry).sweep()

    @property
    def keys(self) -> list[str]:
        return list(self.store.list(""))
