"""Builders for the tests of the client, the stages and the run records."""

from __future__ import annotations

import asyncio
import json
import random
import re
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from combee_core.adapters.memory_store import MemoryStore
from combee_core.calls import Message, Prompt, Receipt, Request, Usage
from combee_core.client import Client
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import AnswerMalformed
from combee_core.learners import load_learner
from combee_core.ports import LanguageModel, Question, Store
from combee_core.records import Item, Plan, State, TraceFate
from combee_core.saving import SavedAnswers
from combee_core.types import (
    BulletTag,
    Group,
    Operation,
    OperationKind,
    Outcome,
    Reflection,
    Step,
    Trajectory,
    Update,
    Vote,
)

T = TypeVar("T")

ACE = load_learner("ace")
EMPTY = ACE.empty()
KEY = "a" * 20


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, on a loop of its own."""
    return asyncio.run(coroutine)


class Naps:
    """A sleep that takes no time and remembers how long it should have taken."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def memory() -> Store:
    """An empty store that no other test sees."""
    return MemoryStore(uuid.uuid4().hex)


def client(model: LanguageModel, store: Store | None = None, *, version: str = "v1", **settings: Any) -> Client:
    """A client that never really sleeps; `client.sleep.taken` are its naps."""
    answers = SavedAnswers(store or memory())
    return Client(model, answers, ModelSettings(**settings), version, sleep=Naps(), rng=random.Random(0))


def naps(of: Client) -> list[float]:
    """How long it slept, in order."""
    assert isinstance(of.sleep, Naps)
    return of.sleep.taken


def prompt(item: str = "t1", text: str = "what?", stage: str = "reflect") -> Prompt:
    """A short prompt."""
    schema = {"type": "object"}
    return Prompt(stage=stage, item=item, messages=(Message(role="user", content=text),), answer_schema=schema)


def value_of(data: Any) -> Any:
    """The parse function of `question`: takes `{"value": …}`."""
    if not isinstance(data, dict) or "value" not in data:
        raise AnswerMalformed("no value in it")
    return data["value"]


def question(item: str = "t1", text: str = "what?", stage: str = "reflect") -> Question[Any]:
    """A question whose answer is `{"value": …}`."""
    return Question(prompt(item, text, stage), value_of)


def receipt(item: str = "t1", **changes: Any) -> Receipt:
    """A paid and accepted call of the run `KEY`."""
    fields = {"stage": "reflect", "item": item, "prompt_sha": "0" * 8, "attempt": 1, "accepted": True, "model": "m"}
    usage = Usage(input_tokens=100, output_tokens=20, cost=0.01)
    return Receipt.model_validate({**fields, "run": KEY, "usage": usage, **changes})


def trajectory(number: int, **changes: Any) -> Trajectory:
    """A run that went wrong and could teach rule `number`."""
    return Trajectory(
        trace_id=f"t{number:02d}",
        task=f"Question {number}?",
        steps=(Step(role="assistant", text="No idea."),),
        outcome=Outcome(score=0.0, label="wrong", feedback=f"expected {number}", source="ground_truth"),
    ).model_copy(update=changes)


def insight(number: int) -> str:
    """What trajectory `number` teaches; no two are similar."""
    words = ("falcon", "harbour", "violet", "glacier", "lantern", "meadow", "copper", "thunder", "orchid", "pepper")
    return f"{words[number % 10]}{number} demands {words[number * 7 % 10]} times {number * 13 + 7}"


def reflection(number: int, text: str | None = None, tags: Sequence[BulletTag] = ()) -> Reflection:
    """The reflection on trajectory `number`."""
    return Reflection(
        trace_id=f"t{number:02d}", key_insight=insight(number) if text is None else text, tags=tuple(tags)
    )


def group(*numbers: int, number: int = 1, of: int = 1) -> Group:
    """A group of those reflections."""
    return Group(number=number, of=of, entries=tuple(reflection(n) for n in numbers))


def add(text: str, *sources: str, section: str = "OTHERS", origin: str = "curate-g01") -> Operation:
    """An operation that adds a bullet."""
    return Operation(kind=OperationKind.ADD, text=text, section=section, sources=sources, origin=origin)


def change(bullet: Any, text: str, *sources: str) -> Operation:
    """An operation that rewrites a bullet."""
    kind = OperationKind.UPDATE
    return Operation(kind=kind, text=text, bullet_ids=(bullet.id,), seen=(bullet.text,), sources=sources)


def vote(bullet_id: str, trace_id: str, tag: str = "helpful") -> Vote:
    """A trace's verdict on a bullet."""
    return Vote.model_validate({"bullet_id": bullet_id, "trace_id": trace_id, "tag": tag})


def answer(request: Request) -> dict[str, Any]:
    """A diligent model: one insight a run, one ADD a distinct insight, and a merge that keeps everything."""
    last = request.prompt.messages[-1].content
    if request.prompt.stage == "reflect":
        found = re.search(r"Question (\d+)\?", last)
        learned = insight(int(found[1])) if found else ""
        return {"key_insight": learned, "reasoning": "", "bullet_tags": []}
    if request.prompt.stage == "curate":
        numbers: dict[str, list[int]] = {}
        for number, text in re.findall(r"^r(\d+)\. insight: (.*)$", last, re.MULTILINE):
            numbers.setdefault(text, []).append(int(number))
        return {"operations": [_added(text, cited) for text, cited in numbers.items()]}
    proposals = [(int(n), json.loads(data)) for n, data in re.findall(r"^o(\d+)\. (\{.*\})", last, re.MULTILINE)]
    return {"operations": [{**data, "from": [number]} for number, data in proposals], "dropped": []}


def _added(text: str, numbers: list[int]) -> dict[str, Any]:
    return {"type": "ADD", "section": "OTHERS", "content": text, "from": numbers}


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
