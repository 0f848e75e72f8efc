"""Records of the run `KEY`: what was asked for, planned, paid, learned and saved."""

from __future__ import annotations

from datetime import date
from typing import Any

from builders import ACE, EMPTY

from combee_core.calls import Receipt, Usage
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.records import Item, Plan, State, TraceFate
from combee_core.types import Update

KEY = "a" * 20
DAY = Source(uris=("/traces",), day=date(2026, 3, 2))


def receipt(item: str = "t1", **changes: Any) -> Receipt:
    """A paid and accepted call of the run."""
    fields = {"stage": "reflect", "item": item, "prompt_sha": "0" * 8, "attempt": 1, "accepted": True, "model": "m"}
    usage = Usage(input_tokens=100, output_tokens=20, cost=0.01)
    return Receipt.model_validate({**fields, "run": KEY, "usage": usage, **changes})


def request(**settings: Any) -> RunRequest:
    """A run on a scripted model."""
    model = settings.pop("model", ModelSettings(model="scripted/model"))
    source = settings.pop("source", Source(uris=("/traces",)))
    again = settings.pop("again", False)
    playbook = settings.pop("playbook", "p")
    own = RunSettings(model=model, **settings)
    return RunRequest(playbook=playbook, store="memory://x", source=source, settings=own, again=again)


def items(count: int, salt: str = "") -> tuple[Item, ...]:
    """The first `count` traces of a plan."""
    return tuple(Item(id=f"t{n:02d}", digest=f"d{n}{salt}") for n in range(1, count + 1))


def plan(count: int = 3, **changes: Any) -> Plan:
    """The plan of a run on `count` traces."""
    base = Plan(key=KEY, request=request(), base_version=0, items=items(count))
    return base.model_copy(update=changes)


def learned(*numbers: int) -> tuple[TraceFate, ...]:
    """These traces were learned from."""
    return tuple(TraceFate(trace_id=f"t{n:02d}", fate="learned") for n in numbers)


def states(*updates: Update, base: Any = None, version: int = 1, model: str = "scripted/model") -> list[State]:
    """The states of a run whose batches made these updates, one after the other."""
    state, made = EMPTY if base is None else base, list[State]()
    for number, update in enumerate(updates, start=1):
        state = ACE.apply(state, update, version).state
        paid = receipt(f"t{number:02d}", model=model)
        made.append(State(number=number, state=ACE.dump(state), update=update, receipts=(paid,), groups=1))
    return made
