"""The policies of tasks: what is retried, what is kept, and under which key."""

from __future__ import annotations

from pathlib import Path

import pytest
from prefect import flow

from combee_core.config import ModelSettings
from combee_core.errors import AnswerMalformed, CombeeError, ModelFault, ModelUnusable
from combee_core.types import Reflected
from tasks.policies import kept, plain, saved
from tasks.results import register

pytestmark = pytest.mark.usefixtures("prefect_api")

MODEL = ModelSettings(retries=2, retry_delay=0.01)
CALLS: list[str] = []


@saved("work-{item}")
def work(item: str, key: str) -> Reflected:
    """Fails as `item` says, the first time."""
    CALLS.append(item)
    errors: dict[str, CombeeError] = {"fault": ModelFault("x"), "odd": AnswerMalformed("x"), "key": ModelUnusable("x")}
    if item in errors and CALLS.count(item) == 1:
        raise errors[item]
    return Reflected(trace_id=item, fate="nothing", reason=key)


@plain("cheap")
def cheap(item: str) -> str:
    """Never kept."""
    CALLS.append(item)
    return item


@pytest.fixture
def block(tmp_path: Path) -> str:
    """The results block of an empty store."""
    CALLS.clear()
    return register(f"file://{tmp_path}/a store")


def ask(block: str, item: str, key: str) -> Reflected:
    @flow(name="policies")
    def once() -> Reflected:
        return kept(block, MODEL, work)(item, key)

    return once()


@pytest.mark.parametrize(("item", "calls"), [("fault", 2), ("odd", 2), ("fine", 1)])
def test_what_may_pass_is_tried_again(block: str, item: str, calls: int) -> None:
    assert ask(block, item, f"work/{item}").trace_id == item
    assert [item] * calls == CALLS


def test_what_cannot_pass_is_tried_once(block: str) -> None:
    with pytest.raises(ModelUnusable):
        ask(block, "key", "work/key")
    assert CALLS == ["key"]


def test_a_result_is_kept_under_its_key_in_the_store(block: str, tmp_path: Path) -> None:
    first = ask(block, "fine", "work/1")
    assert ask(block, "fine", "work/1") == first
    assert CALLS == ["fine"]
    assert (tmp_path / "a store" / "results" / "work" / "1").exists()
    ask(block, "fine", "work/2")
    assert CALLS == ["fine", "fine"]


def test_a_failure_is_not_kept(block: str) -> None:
    with pytest.raises(ModelUnusable):
        ask(block, "key", "work/key")
    assert ask(block, "key", "work/key").trace_id == "key"


def test_a_plain_task_runs_each_time(block: str) -> None:
    @flow(name="policies")
    def twice() -> list[str]:
        return [cheap("c"), cheap("c")]

    assert twice() == ["c", "c"]
    assert CALLS == ["c", "c"]


def test_a_memory_store_cannot_hold_results() -> None:
    with pytest.raises(ValueError, match="does not outlive its process"):
        register("memory://x")
