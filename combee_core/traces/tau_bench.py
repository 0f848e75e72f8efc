"""tau-bench result files: one JSON array of runs, each with its reward and what it was expected to change.

A run is `{task_id, trial, reward, info: {task: {actions, outputs, …}, reward_info}, traj: [messages]}`.
Source: the public repository sierra-research/tau-bench. The file holds no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from combee_core.base import content_hash
from combee_core.ports import ReadOptions, TraceReader
from combee_core.traces.expected import Change, first_difference
from combee_core.traces.jsonl import Row, converted, elements, unread
from combee_core.traces.messages import conversation
from combee_core.traces.values import agent_ran, to_object, to_score, to_text, verdict
from combee_core.types import Outcome, Step, TraceFile, Trajectory, Unread

_SEEN = 10
_RIGHT = "every expected change was made, and no other"


class TauBench:
    """Reads tau-bench arrays."""

    name: ClassVar[str] = "tau_bench"
    fallback: ClassVar[bool] = False

    def recognises(self, file: TraceFile) -> bool:
        """An array with, among its first entries, an object with a task id and a `traj` list."""
        first = islice(elements(file.data, file.uri), _SEEN)
        return any(isinstance(item, Row) and _is_run(item.value) for item in first)

    def read(self, file: TraceFile, options: ReadOptions) -> Iterator[Trajectory | Unread]:
        """Each run; ids are `tau-<task_id>.<trial>-<first 8 of the hash of traj>`."""
        return converted(elements(file.data, file.uri), lambda row: _run(row, options))


READER: TraceReader = TauBench()


def _is_run(value: dict[str, Any]) -> bool:
    return "task_id" in value and isinstance(value.get("traj"), list)


def _run(row: Row, options: ReadOptions) -> Trajectory | Unread:
    run = row.value
    if not _is_run(run):
        return unread(row.where, "no task_id or no traj list in this entry", run)
    trace_id = f"tau-{to_text(run['task_id'])}.{to_text(run.get('trial', 0))}-{content_hash(run['traj'])[:8]}"
    try:
        talk = conversation(run["traj"])
    except ValueError as error:
        return unread(row.where, str(error), run, trace_id)
    return Trajectory(
        trace_id=trace_id,
        task=talk.task,
        policy=talk.policy,
        steps=talk.steps,
        outcome=_outcome(run, talk.steps, options),
        source=row.where,
        metadata=_metadata(run),
    )


def _outcome(run: dict[str, Any], steps: tuple[Step, ...], options: ReadOptions) -> Outcome:
    score, complaint = to_score(run.get("reward"))
    info = to_object(run.get("info"))
    task = to_object(info.get("task"))
    unjudged = info.get("reward_info") is None
    outcome = Outcome(
        score=score,
        label=complaint or ("no reward detail" if unjudged else verdict(score)),
        feedback="" if score is None else f"reward {score:g}",
        status="no_agent_activity" if not agent_ran(steps) else "error" if info.get("error") else "finished",
        source="none" if score is None else "reward",
    )
    if score is None or not options.ground_truth or not isinstance(task.get("actions"), list):
        return outcome
    feedback = _feedback(score, task, steps, unjudged)
    return outcome.model_copy(update={"feedback": feedback, "source": "ground_truth"})


def _feedback(score: float, task: dict[str, Any], steps: tuple[Step, ...], cut: bool) -> str:
    outputs = task["outputs"] if isinstance(task.get("outputs"), list) else []
    difference = first_difference(_expected(task["actions"]), map(to_text, outputs), steps)
    if score < 1:
        return difference or _unexplained(score, cut, steps)
    # The environment compares its data, so another way to the same end is right too.
    return "what was expected was reached in another way" if difference else _RIGHT


def _unexplained(score: float, cut: bool, steps: tuple[Step, ...]) -> str:
    turns = sum(step.role == "assistant" for step in steps)
    # A run that never came to its end is not judged, whatever it did until then.
    why = f": it stopped after {turns} agent turns, before the conversation ended" if cut else ""
    return f"all expected calls and outputs found, yet reward {score:g}{why}"


def _expected(actions: list[Any]) -> Iterator[Change]:
    for action in map(to_object, actions):
        yield Change(to_text(action.get("name")), to_object(action.get("kwargs")))


def _metadata(run: dict[str, Any]) -> dict[str, str]:
    """For people only: `instruction` is the hidden script of the simulated user."""
    task = to_object(to_object(run.get("info")).get("task"))
    known = {"task_id": run["task_id"], "trial": run.get("trial", 0)}
    known |= {name: task[name] for name in ("instruction", "user_id") if name in task}
    return {name: to_text(value) for name, value in known.items()}
