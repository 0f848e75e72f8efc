"""Mapped tasks that fail: never None in a later step, never an exception in a prompt, never silently green."""

from __future__ import annotations

from typing import Any

import pytest
from prefect import flow, task

from combee_core.errors import AnswerMalformed, ModelFault, RunError
from combee_core.types import Reflected, Trajectory
from tasks.gather import collected, settled

pytestmark = pytest.mark.usefixtures("prefect_api")


@task
def number(n: int) -> int:
    """Fails for 2."""
    if n == 2:
        raise ModelFault("no answer")
    return n * 10


@task
def reflect(trace_id: str) -> Reflected:
    """Fails for `bad`, and for `bug` with an error that is not ours."""
    if trace_id == "bad":
        raise AnswerMalformed("no JSON")
    if trace_id == "bug":
        raise ZeroDivisionError("a fault of the code")
    return Reflected(trace_id=trace_id, fate="nothing")


def run(body: Any) -> Any:
    """`body()` inside a flow."""
    return flow(name="gathering")(body)()


def runs(*ids: str) -> list[Trajectory]:
    return [Trajectory(trace_id=trace_id, task="") for trace_id in ids]


def test_results_come_in_the_order_of_the_items() -> None:
    assert run(lambda: collected("curate", ["a", "b", "c"], number.map([1, 3, 4]))) == [10, 30, 40]


def test_one_failed_item_raises_with_its_name_after_all_have_ended() -> None:
    reached = []

    def body() -> None:
        reached.append(collected("curate", ["curate-g01", "curate-g02"], number.map([1, 2])))

    with pytest.raises(RunError, match="curate-g02 failed: ModelFault: no answer") as caught:
        run(body)
    assert (caught.value.stage, caught.value.item) == ("curate", "curate-g02")
    assert reached == []


def test_nothing_to_map_is_nothing_collected() -> None:
    assert run(lambda: collected("curate", [], number.map([]))) == []


def test_a_failed_reflection_is_a_result_with_its_reason() -> None:
    ids = ["bad", *(f"t{n}" for n in range(30))]
    reflected = run(lambda: settled(runs(*ids), reflect.map(ids), 0.05))
    assert [r.trace_id for r in reflected] == ids
    assert reflected[0].fate == "failed"
    assert reflected[0].reason == "AnswerMalformed: no JSON"
    assert reflected[0].reflection is None, "an exception is never handed on as data"


def test_too_many_failed_reflections_raise() -> None:
    with pytest.raises(RunError, match="1 of 2 reflections failed"):
        run(lambda: settled(runs("bad", "good"), reflect.map(["bad", "good"]), 0.05))


def test_a_fault_of_the_code_is_not_taken_for_a_failed_trace() -> None:
    ids = ["bug", *(f"t{n}" for n in range(40))]
    with pytest.raises(ZeroDivisionError):
        run(lambda: settled(runs(*ids), reflect.map(ids), 0.5))
