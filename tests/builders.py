"""Small nouns of learning: each builder takes what matters to the test and makes up the rest."""

from __future__ import annotations

from typing import Any

from combee_core.learners import load_learner
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.types import BulletTag, Group, Operation, OperationKind, Outcome, Reflection, Step, Trajectory, Vote

ACE = load_learner("ace")
EMPTY: Playbook = ACE.empty()


def bullet(bullet_id: str = "calc-00001", text: str = "Round last.", **given: Any) -> Bullet:
    """A bullet."""
    return Bullet(id=bullet_id, text=text, **given)


def playbook(*bullets: Bullet, section: str = "FORMULAS & CALCULATIONS", **others: tuple[Bullet, ...]) -> Playbook:
    """A playbook of one section, and further ones by name."""
    sections = [Section(name=section, bullets=bullets)]
    sections += [Section(name=name.replace("_", " "), bullets=its) for name, its in others.items()]
    return Playbook(sections=tuple(sections))


def numbered(*texts: str) -> Playbook:
    """A playbook of one section with bullets calc-00001, calc-00002, …"""
    return playbook(*(bullet(f"calc-{n:05d}", text) for n, text in enumerate(texts, start=1)))


def operation(kind: str = "ADD", text: str = "", *bullets: Bullet, **given: Any) -> Operation:
    """An operation on `bullets` as they are now."""
    return Operation(
        kind=OperationKind(kind),
        text=text,
        bullet_ids=tuple(b.id for b in bullets),
        seen=tuple(b.text for b in bullets),
        **given,
    )


def add(text: str, *sources: str, section: str = "OTHERS", origin: str = "curate-g01") -> Operation:
    """An operation that adds what these traces taught."""
    return operation("ADD", text, section=section, sources=sources, origin=origin)


def change(its: Bullet, text: str, *sources: str) -> Operation:
    """An operation that rewrites a bullet."""
    return operation("UPDATE", text, its, sources=sources)


def vote(bullet_id: str, trace_id: str = "t1", tag: Any = "helpful") -> Vote:
    """One trace's verdict."""
    return Vote(trace_id=trace_id, bullet_id=bullet_id, tag=tag)


def reflection(trace_id: str = "t1", insight: str = "Round last.", **tags: Any) -> Reflection:
    """A reflection; tags as `calc_00001="helpful"`."""
    its = tuple(BulletTag(bullet_id=name.replace("_", "-"), tag=tag) for name, tag in tags.items())
    return Reflection(trace_id=trace_id, key_insight=insight, tags=its)


def group(*entries: Reflection, number: int = 1, of: int = 1) -> Group:
    """What one curator call reads."""
    return Group(number=number, of=of, entries=entries)


def trajectory(trace_id: str = "t1", task: str = "What is the ROE?", **given: Any) -> Trajectory:
    """A run of two steps that answered wrongly and was told so."""
    steps = (Step(role="user", text=task), Step(role="assistant", text="0.2"))
    outcome = Outcome(score=0.0, label="wrong", feedback="Expected 20.", source="ground_truth")
    return Trajectory(trace_id=trace_id, task=task, **{"steps": steps, "outcome": outcome, **given})
