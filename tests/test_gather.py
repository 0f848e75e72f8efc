"""Mapped tasks that fail: never None in a later step, never an exception in a prompt, never silently green."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prefect import flow, task
from prefect.states import Failed

from combee_core.errors import AnswerMalformed, ModelFault, ModelUnusable, RunError, RunStopped
from combee_core.shards import Shard, Unsettled, cut
from combee_core.types import Reflected, Trajectory
from tasks.gather import collected, gathered, outcome, settled

pytestmark = pytest.mark.usefixtures("prefect_api")

LOST = Unsettled(reason="ModelFault: no answer")


@task(task_run_name="{shard.name}")
def work(shard: Shard[int]) -> Any:
    """Multiplies by ten. 2 is an error of a shard of its own, else of an item; 0 and 99 are errors of the whole."""
    if 0 in shard.items:
        raise ZeroDivisionError("a fault of the code")
    if 99 in shard.items:
        raise ModelUnusable("wrong key")
    if shard.items == (2,):
        raise ModelFault("no answer")
    done = [LOST if n == 2 else 10 * n for n in shard.items]
    return Failed(message="1 failed", data=done) if LOST in done else done


def gather(size: int, *numbers: int) -> Any:
    """What becomes of these items in shards of `size`."""
    shards = cut("curate", [(f"curate-g{n:02d}", n) for n in numbers], size)
    return run(lambda: gathered(shards, work.map(shards)))


def run(body: Callable[[], Any]) -> Any:
    """`body()` inside a flow."""
    return flow(name="gathering")(body)()


# futures → items


@pytest.mark.parametrize("size", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(size: int) -> None:
    assert gather(size, 1, 3, 4, 5) == [10, 30, 40, 50]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_failed_item_is_a_record_in_its_place_and_the_others_are_kept(size: int) -> None:
    assert gather(size, 1, 2, 3, 4) == [10, LOST, 30, 40]


def test_nothing_to_map_is_nothing_gathered() -> None:
    assert gather(1) == []


def test_a_wrong_key_is_raised_as_it_is() -> None:
    with pytest.raises(ModelUnusable, match="wrong key"):
        gather(1, 1, 99, 2)


def test_a_fault_of_the_code_is_not_taken_for_a_failed_item() -> None:
    with pytest.raises(ZeroDivisionError):
        gather(2, 1, 2, 3, 0)


class Vanished:
    """A future whose task went with its worker."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self._final_state = None

    def wait(self, timeout: float | None = None) -> None:
        """Ends without a state, as a runner's future does that lost its task."""

    def result(self, timeout: float | None = None, raise_on_failure: bool = True) -> Any:
        """Raises."""
        raise self._error


def test_a_task_that_was_lost_with_its_worker_is_named() -> None:
    shards = cut("curate", [("curate-g01", 1), ("curate-g02", 2)], 1)
    futures: list[Any] = [Vanished(OSError("worker is gone")), Vanished(OSError("worker is gone"))]
    with pytest.raises(RunError, match="curate-g01 was lost: OSError: worker is gone") as caught:
        gathered(shards, futures)
    assert caught.value.item == "curate-g01"


# items → a stage's results


def test_failed_items_are_named_with_their_reasons() -> None:
    done = [1, LOST, 3, Unsettled(reason="AnswerMalformed: no JSON")]
    with pytest.raises(RunError) as caught:
        collected("curate", ["curate-g01", "curate-g02", "curate-g03", "curate-g04"], done)
    assert str(caught.value) == (
        "curate-g02 failed: ModelFault: no answer; curate-g04 failed: AnswerMalformed: no JSON"
    )
    assert (caught.value.stage, caught.value.item) == ("curate", "curate-g02")


def test_items_that_failed_for_one_reason_share_it_whatever_request_or_place_it_names() -> None:
    kept = "AnswerMalformed: no JSON; its beginning is in the store: saved/{}/1"
    reasons = [kept.format("ab"), "ModelFault: 500 (req_1)", kept.format("cd"), "ModelFault: 500 (req_2)"]
    with pytest.raises(RunError) as caught:
        collected("rollout", ["s1", "s2", "s3", "s4"], [Unsettled(reason=reason) for reason in reasons])
    assert str(caught.value) == "s1, s3 failed: AnswerMalformed: no JSON…; s2, s4 failed: ModelFault: 500 (…)"
    long = "ModelFault: " + "x" * 300
    with pytest.raises(RunError, match=r"^s1 failed: ModelFault: x{300}1; s2 failed: ModelFault: x{300}2$"):
        collected("rollout", ["s1", "s2"], [Unsettled(reason=f"{long}{n}") for n in (1, 2)])
    with pytest.raises(RunError, match=r"^s0, s1, .*, s19, … and 80 more failed: ModelFault: no answer$"):
        collected("rollout", [f"s{n}" for n in range(100)], [LOST] * 100)


def test_results_without_a_failure_are_handed_on() -> None:
    assert collected("curate", ["a", "b"], [1, 2]) == [1, 2]
    assert collected("curate", [], []) == []


def runs(*ids: str) -> list[Trajectory]:
    return [Trajectory(trace_id=trace_id, task="") for trace_id in ids]


def test_a_failed_reflection_is_a_result_with_its_reason() -> None:
    ids = ["bad", *(f"t{n}" for n in range(30))]
    done = [LOST, *(Reflected(trace_id=trace_id, fate="nothing") for trace_id in ids[1:])]
    reflected = settled(runs(*ids), done, 0.05)
    assert [r.trace_id for r in reflected] == ids
    assert (reflected[0].fate, reflected[0].reason) == ("failed", "ModelFault: no answer")
    assert reflected[0].reflection is None, "an exception is never handed on as data"


def test_too_many_failed_reflections_raise() -> None:
    with pytest.raises(RunError, match="1 of 2 reflections failed"):
        settled(runs("bad", "good"), [LOST, Reflected(trace_id="good", fate="nothing")], 0.05)


def test_a_tasks_error_is_a_record_unless_it_stops_the_run() -> None:
    assert outcome("digest") == "digest"
    assert outcome(AnswerMalformed("no JSON")) == Unsettled(reason="AnswerMalformed: no JSON")
    for fatal in (ModelUnusable("x"), RunStopped("x"), KeyError("x")):
        with pytest.raises(type(fatal)):
            outcome(fatal)
