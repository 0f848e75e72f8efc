"""The simulated model asked with the pipeline's own prompts, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combee_core.learners import load_learner
from combee_core.playbook import Bullet, Playbook
from combee_core.ports import Question
from combee_core.simulation.day import day
from combee_core.simulation.responder import respond
from combee_core.simulation.specifics import Specific, stated_in
from combee_core.simulation.world import World
from combee_core.types import BulletTag, Group, Operation, OperationKind, Outcome, Reflection, Step, Trajectory

ACE = load_learner("ace")
WORLD = World(seed=3)
EMPTY: Playbook = ACE.empty()


def ask(question: Question[Any], seed: int = 0) -> dict[str, Any]:
    return respond(question.prompt.messages, seed)


def book(*texts: str) -> Playbook:
    bullets = tuple(Bullet(id=f"calc-{n:05d}", text=text) for n, text in enumerate(texts, start=1))
    first = EMPTY.sections[0].model_copy(update={"bullets": bullets})
    return Playbook(sections=(first, *EMPTY.sections[1:]), next_id=len(texts) + 1)


def failed(index: int, cited: tuple[str, ...] = ()) -> Trajectory:
    run = day(WORLD, 60, seed=1)[index]
    return run.model_copy(update={"cited": cited})


def foreign(*steps: Step, score: float | None = 0.0, feedback: str = "", cited: tuple[str, ...] = ()) -> Trajectory:
    source = "ground_truth" if feedback else "none" if score is None else "reward"
    outcome = Outcome.model_validate({"score": score, "feedback": feedback, "source": source})
    return Trajectory(trace_id="t", task="Change my flight, please.", steps=steps, outcome=outcome, cited=cited)


def insight_of(run: Trajectory, state: Playbook = EMPTY) -> str:
    return str(ask(ACE.reflect(state, run))["key_insight"])


def reflection(n: int, insight: str, harmful: str = "") -> Reflection:
    tags = (BulletTag(bullet_id=harmful, tag="harmful"),) if harmful else ()
    return Reflection(trace_id=f"t{n}", key_insight=insight, tags=tags, outcome=Outcome(score=0.0, label="wrong"))


def curated(entries_: Sequence[Reflection], state: Playbook = EMPTY, seed: int = 0) -> list[dict[str, Any]]:
    group = Group(number=1, of=1, entries=tuple(entries_))
    operations: list[dict[str, Any]] = ask(ACE.curate(state, group), seed)["operations"]
    return operations


def add(text: str, n: int = 1) -> Operation:
    return Operation(kind=OperationKind.ADD, text=text, section="OTHERS", sources=(f"t{n}",), origin=f"curate-g{n:02d}")


def update(text: str, bullet: str, n: int = 1) -> Operation:
    return Operation(
        kind=OperationKind.UPDATE, text=text, bullet_ids=(bullet,), seen=("",), sources=(f"t{n}",), origin="g"
    )


def merge(operations: Sequence[Operation], state: Playbook = EMPTY, seed: int = 0) -> dict[str, Any]:
    return ask(ACE.merge(state, operations), seed)


def rules_of(operations: Sequence[dict[str, Any]]) -> list[Specific]:
    return [one.specific for op in operations for one in stated_in(op["content"])]


def rule_reflections(count: int, per_rule: int = 1) -> list[Reflection]:
    rules = [WORLD.rule(index) for index in range(count)]
    return [
        reflection(n * count + at, rule.wording((n + at) % 3)) for n in range(per_rule) for at, rule in enumerate(rules)
    ]
