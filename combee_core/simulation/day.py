"""A day of traces from the simulated desk: agents without a playbook, as a logger would have written them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta

from combee_core.simulation.specifics import puzzle_in
from combee_core.simulation.world import World
from combee_core.types import Sample, Step, Trajectory

_DAY_SECONDS = 86_400


def day(world: World, n: int, seed: int) -> tuple[Trajectory, ...]:
    """`n` runs without a playbook, scored, with ids `day<seed>-00001` and so on."""
    return tuple(_untaught(world, sample) for sample in world.sample(n, seed, f"day{seed}"))


def _untaught(world: World, sample: Sample) -> Trajectory:
    puzzle = puzzle_in(sample.context)
    answer = puzzle.naive if puzzle else ""
    steps = (Step(role="user", text=sample.context), Step(role="assistant", text=answer))
    return Trajectory(trace_id=sample.id, task=sample.context, steps=steps, outcome=world.score(sample, answer))


def day_jsonl(world: World, n: int, seed: int, on: date) -> bytes:
    """The same runs as plain JSON rows, UTF-8, one a line, spread evenly over the day `on` in UTC.

    Fields: id, input, output, score, feedback, timestamp.
    """
    start = datetime.combine(on, time(), UTC)
    runs = enumerate(day(world, n, seed))
    rows = (_row(run, start + timedelta(seconds=at * _DAY_SECONDS // n)) for at, run in runs)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _row(run: Trajectory, when: datetime) -> dict[str, object]:
    return {
        "id": run.trace_id,
        "input": run.task,
        "output": run.steps[-1].text,
        "score": run.outcome.score,
        "feedback": run.outcome.feedback,
        "timestamp": when.isoformat(),
    }
