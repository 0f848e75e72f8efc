"""The last message of each prompt: the stage line, then the evidence, numbered so that an answer can point at it.

What stands on one line here is folded, so that no text of a run can pass for a heading or an entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from combee_core.playbook import fold
from combee_core.types import Group, Operation, OperationKind, Reflection, Sample, Step, Trajectory


def problem(sample: Sample) -> str:
    """The generator's message."""
    return f"stage: rollout\n\n## Problem\n\n{sample.context}\n"


def run(trajectory: Trajectory) -> str:
    """The reflector's message: problem, steps, outcome, bullets used."""
    outcome = trajectory.outcome
    score = "none" if outcome.score is None else f"{outcome.score:g}"
    parts = [
        "stage: reflect",
        f"## Problem\n\n{trajectory.task}",
        "## Run\n\n" + "\n".join(_step(n, step) for n, step in enumerate(trajectory.steps, start=1)),
        f"## Outcome\n\nscore: {score}\nlabel: {fold(outcome.label)}\nfeedback: {fold(outcome.feedback)}",
        f"## Bullets the agent used\n\n{', '.join(map(fold, trajectory.cited)) or 'none'}",
    ]
    return "\n\n".join(parts) + "\n"


def _step(number: int, step: Step) -> str:
    name = f" {fold(step.name)}" if step.name else ""
    lines = [f"[{number}] {step.role}{name}: {fold(step.text)}".rstrip()]
    lines += [f"[{number}] call {fold(call.name)}: {fold(call.arguments)}" for call in step.calls]
    return "\n".join(lines)


def quoted(policy: str) -> str:
    """An agent's own instructions, marked line by line, so that none of their headings is taken for one of ours."""
    return "\n".join(f"> {line}".rstrip() for line in policy.splitlines()) or "(not recorded)"


def group(of: Group) -> str:
    """The curator's message: the group's reflections as r1, r2, …"""
    head = f"stage: curate, group {of.number} of {of.of}\n\n## Reflections\n"
    return "\n".join([head, *(_entry(n, r) for n, r in enumerate(of.entries, start=1))]) + "\n"


def _entry(number: int, reflection: Reflection) -> str:
    return "\n".join([f"r{number}. insight: {fold(reflection.key_insight)}", *_details(reflection)])


def _details(reflection: Reflection) -> Iterator[str]:
    fields = {
        "outcome": reflection.outcome.label,
        "error": reflection.error_identification,
        "cause": reflection.root_cause_analysis,
        "approach": reflection.correct_approach,
        "tags": ", ".join(f"{tag.bullet_id} {tag.tag}" for tag in reflection.tags),
    }
    return (f"  {name}: {fold(text)}" for name, text in fields.items() if text.strip())


def proposals(operations: Sequence[Operation]) -> str:
    """The merger's message: the operations as o1, o2, …, one JSON object a line."""
    lines = [f"o{n}. {_operation(op)}" for n, op in enumerate(operations, start=1)]
    return "\n".join(["stage: merge\n\n## Operations\n", *lines]) + "\n"


def _operation(op: Operation) -> str:
    data: dict[str, object] = {"type": str(op.kind)}
    if op.kind is OperationKind.ADD:
        data["section"] = op.section
    elif op.kind is OperationKind.MERGE:
        data["bullet_ids"] = list(op.bullet_ids)
    else:
        data["bullet_id"] = op.bullet_ids[0]
    if op.text:
        data["content"] = op.text
    return json.dumps(data, ensure_ascii=False)
