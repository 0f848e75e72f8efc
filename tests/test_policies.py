"""The policies of tasks: what is retried, what is kept, and under which key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.schemas.objects import State as PrefectState

from combee_core.config import ModelSettings
from combee_core.errors import (
    AnswerMalformed,
    AnswerTruncated,
    CombeeError,
    ModelFault,
    ModelUnusable,
    RunStopped,
)
from combee_core.shards import Shard, ShardUnfinished, Unsettled, attempt
from combee_core.types import Reflected
from tasks.policies import kept, plain, saved, work_through
from tasks.results import register

pytestmark = pytest.mark.usefixtures("prefect_api")

MODEL = ModelSettings(retries=2, retry_delay=0.01)
ASKED: list[str] = []
ERRORS: dict[str, tuple[CombeeError, int]] = {
    "fault": (ModelFault("500"), 1),
    "twice": (ModelFault("500"), 2),
    "odd": (AnswerMalformed("no JSON"), 1),
    "down": (ModelFault("always 500"), 99),
    "cut": (AnswerTruncated("cut twice", final=True), 99),
    "key": (ModelUnusable("wrong key"), 1),
    "stop": (RunStopped("enough"), 99),
}
"""What goes wrong with an item, and how often."""


async def ask(item: str) -> Reflected:
    """Fails as the item says."""
    ASKED.append(item)
    error, times = ERRORS.get(item, (None, 0))
    if error and ASKED.count(item) <= times:
        raise error
    return Reflected(trace_id=item, fate="nothing")


def together(items: Sequence[Any], ask: Any) -> list[Any]:
    """As a workshop does it, on a loop of its own."""

    async def all_of_them() -> list[Any]:
        return await attempt(items, ask, asyncio.Semaphore(8))

    return asyncio.run(all_of_them())


@saved("work")
def work(shard: Shard[str], key: str) -> Any:
    """A stage."""
    return work_through(together, shard, ask)


@plain("cheap")
def cheap(item: str) -> str:
    """Never kept."""
    ASKED.append(item)
    return item


@pytest.fixture
def block(tmp_path: Path) -> str:
    """The results block of an empty store."""
    ASKED.clear()
    return register(f"file://{tmp_path}/a store")


def ended(block: str, items: Sequence[str], key: str = "work/1") -> PrefectState[Any]:
    """How a task on these items ends."""
    found: list[PrefectState[Any]] = []

    @flow(name="policies")
    def once() -> None:
        shard = Shard("work-s0001", tuple(f"work-{item}" for item in items), tuple(items))
        found.append(kept(block, MODEL, work)(shard, key, return_state=True))

    once()
    return found[0]


def values(state: PrefectState[Any]) -> Any:
    return state.result(raise_on_failure=False)


def ids(state: PrefectState[Any]) -> list[str]:
    return [one.reason if isinstance(one, Unsettled) else one.trace_id for one in values(state)]


# one item


@pytest.mark.parametrize(("item", "calls"), [("fault", 2), ("odd", 2), ("twice", 3), ("fine", 1)])
def test_what_may_pass_is_tried_again(block: str, item: str, calls: int) -> None:
    assert ids(ended(block, [item])) == [item]
    assert [item] * calls == ASKED


@pytest.mark.parametrize(("item", "calls"), [("key", 1), ("stop", 1), ("cut", 1), ("down", 3)])
def test_an_items_error_is_its_tasks(block: str, item: str, calls: int) -> None:
    state = ended(block, [item])
    assert state.is_failed()
    assert type(values(state)) is type(ERRORS[item][0])
    assert [item] * calls == ASKED


# several


def test_the_others_of_a_shard_are_done_whatever_becomes_of_one(block: str) -> None:
    state = ended(block, ["a", "down", "b"])
    assert state.is_failed()
    assert ids(state) == ["a", "ModelFault: always 500", "b"]
    assert state.message == "1 of 3 failed: work-down: always 500"
    assert ASKED.count("down") == 3


def test_a_shard_whose_faults_pass_is_complete(block: str) -> None:
    state = ended(block, ["a", "fault", "twice", "odd"])
    assert state.is_completed()
    assert ids(state) == ["a", "fault", "twice", "odd"]
    assert max(map(ASKED.count, ASKED)) == 3


def test_a_shard_with_failures_is_not_kept_so_that_a_rerun_asks_for_them(block: str) -> None:
    assert ended(block, ["a", "down"]).is_failed()
    asked = len(ASKED)
    again = ended(block, ["a", "down"])
    assert again.is_failed()
    assert len(ASKED) > asked
    assert ids(again) == ["a", "ModelFault: always 500"]


def test_errors_that_no_attempt_mends_end_a_shard_at_once(block: str) -> None:
    state = ended(block, ["a", "cut"])
    assert state.is_failed()
    assert ids(state) == ["a", "AnswerTruncated: cut twice"]
    assert ASKED == ["a", "cut"]


@pytest.mark.parametrize("fatal", ["key", "stop"])
def test_what_stops_the_run_fails_the_whole_shard_at_once(block: str, fatal: str) -> None:
    state = ended(block, ["a", fatal, "down"])
    assert type(values(state)) is type(ERRORS[fatal][0])
    assert ["a", fatal, "down"] == ASKED


def test_without_an_orchestrator_a_shard_has_one_attempt(block: str) -> None:
    shard = Shard("work-s0001", ("work-a", "work-fault"), ("a", "fault"))
    assert ids(work.fn(shard, "work/1")) == ["a", "ModelFault: 500"]
    assert ASKED == ["a", "fault"]


# keeping


@pytest.mark.parametrize("items", [["fine"], ["fine", "well"]])
def test_a_result_is_kept_under_its_key_in_the_store(block: str, tmp_path: Path, items: list[str]) -> None:
    first = ended(block, items)
    again = ended(block, items)
    assert (values(again), again.name) == (values(first), "Cached")
    assert items == ASKED
    assert (tmp_path / "a store" / "results" / "work" / "1").exists()
    ended(block, items, "work/2")
    assert items * 2 == ASKED


def test_a_failure_is_not_kept(block: str) -> None:
    assert ended(block, ["key"]).is_failed()
    assert ids(ended(block, ["key"])) == ["key"]


def test_a_stage_has_its_models_retries_and_the_delays_between_them(block: str) -> None:
    stage = kept(block, ModelSettings(retries=3, retry_delay=7.0), work)
    assert (stage.retries, stage.retry_delay_seconds) == (3, [7.0, 14.0, 28.0])
    assert kept(block, ModelSettings(retries=1, fallbacks=["simulated/other"]), work).retries == 2


def test_a_plain_task_runs_each_time(block: str) -> None:
    @flow(name="policies")
    def twice() -> list[str]:
        return [cheap("c"), cheap("c")]

    assert twice() == ["c", "c"]
    assert ASKED == ["c", "c"]


def test_an_unfinished_shard_is_told_apart_from_its_items_errors() -> None:
    assert ShardUnfinished("1 of 2 failed").retryable
    assert not issubclass(ShardUnfinished, ModelFault)


def test_a_memory_store_cannot_hold_results() -> None:
    with pytest.raises(ValueError, match="does not outlive its process"):
        register("memory://x")
