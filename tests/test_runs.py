"""Run plans: found or made, advanced batch by batch, finished once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from lessons import trajectory
from run_records import items, plan, request

from combee_core.config import ModelSettings, RunRequest, Source
from combee_core.errors import StoreError, UsageError
from combee_core.ports import Store
from combee_core.records import Batch, Item, Plan, RunResult, State
from combee_core.runs import Run, find_or_plan, next_batch, run_key, run_of
from combee_core.types import Sample, Unread

DAY = Source(uris=("s3://traces/a",), day=date(2026, 3, 2), timezone="Europe/Berlin")


def result(version: int = 1) -> RunResult:
    return RunResult(playbook="p", version=version, digest="d")


def found(store: Store, count: int = 3, base: int = 0, prompts: str = "", **how: Any) -> Run:
    return find_or_plan(store, request(**how), items(count), (), base, prompts)


# the key


@pytest.mark.parametrize(
    "change",
    [
        {"playbook": "q"},
        {"batch_size": 10},
        {"copies": 3},
        {"shuffle": "spread"},
        {"seed": 1},
        {"max_failed": 0.5},
        {"learner": "gepa"},
        {"model": ModelSettings(model="another/model")},
        {"model": ModelSettings(model="scripted/model", temperature=0.5)},
        {"model": ModelSettings(model="scripted/model", max_output_tokens=5)},
        {"source": Source(uris=("/traces",), ground_truth=False)},
        {"source": Source(uris=("/traces",), fields={"answer": "out"})},
        {"source": Source(uris=("/traces",), kind="samples")},
    ],
)
def test_whatever_changes_what_is_learned_changes_the_key(change: dict[str, Any]) -> None:
    assert run_key(request(**change), items(3), 0) != run_key(request(), items(3), 0)


@pytest.mark.parametrize(
    "change",
    [
        {"source": Source(uris=("/another/folder", "/and/more"))},
        {"source": Source(uris=("/traces",), timezone="Asia/Tokyo")},
        {"again": True},
        {"rollout_shard": 1},
        {"prompts": "/here/prompts"},
        {"model": ModelSettings(model="scripted/model", concurrency=1)},
        {
            "model": ModelSettings(
                model="scripted/model", timeout=1, retries=0, retry_delay=0, max_waits=0, wait_budget=0
            )
        },
    ],
)
def test_places_and_patience_are_not_in_the_key_of_learn(change: dict[str, Any]) -> None:
    assert run_key(request(**change), items(3), 0) == run_key(request(), items(3), 0)


def test_the_key_of_learn_is_the_content_of_its_input_in_any_order() -> None:
    key = run_key(request(), items(3), 0)
    renamed = tuple(Item(id=f"other-{i.id}", digest=i.digest) for i in reversed(items(3)))
    assert run_key(request(), renamed, 0) == key
    assert run_key(request(), items(4), 0) != key
    assert run_key(request(), items(3, "changed"), 0) != key


def test_a_day_is_known_by_its_source_and_date_whatever_it_holds() -> None:
    key = run_key(request(source=DAY), items(3), 0)
    assert run_key(request(source=DAY), items(9, "late traces"), 0) == key
    for change in ({"day": date(2026, 3, 3)}, {"timezone": "UTC"}, {"uris": ("s3://traces/b",)}):
        assert run_key(request(source=DAY.model_copy(update=change)), items(3), 0) != key


def test_the_order_of_a_days_sources_does_not_matter() -> None:
    two = [DAY.model_copy(update={"uris": uris}) for uris in (("a", "b"), ("b", "a"))]
    assert run_key(request(source=two[0]), (), 0) == run_key(request(source=two[1]), (), 0)


def test_other_prompts_make_another_run() -> None:
    assert run_key(request(), items(3), 0, "fingerprint") != run_key(request(), items(3), 0)


# find or plan


def test_a_plan_is_made_from_the_request(store: Store) -> None:
    unread = (Unread(where="x", reason="cut", trace_id="t9"),)
    run = find_or_plan(store, request(batch_size=2), items(3), unread, 7)
    made = run.plan()
    assert (made.key, made.base_version, made.items, made.unread) == (run.key, 7, items(3), unread)
    assert made.batch_count == 2
    assert made.request == request(batch_size=2)


def test_the_same_request_finds_the_plan_with_its_recorded_base() -> None:
    store = memory()
    first = found(store, base=1)
    assert found(store, base=5) == first
    assert first.plan().base_version == 1


def test_a_finished_run_is_found_too_and_is_a_no_op() -> None:
    store = memory()
    first = found(store)
    first.finish(result())
    assert found(store) == first
    assert found(store).result() == result()


def test_again_starts_a_new_run_after_a_finished_one() -> None:
    store = memory()
    first = found(store, base=0)
    first.finish(result())
    second = found(store, base=1, again=True)
    assert second.key != first.key
    assert second.plan().base_version == 1


def test_again_goes_on_with_an_unfinished_run() -> None:
    store = memory()
    first = found(store)
    assert found(store, again=True) == first


def test_again_leaves_a_run_whose_input_is_not_there_any_more() -> None:
    store = memory()
    first = find_or_plan(store, request(source=DAY), items(3), (), 0)
    changed = items(3, "changed")
    assert find_or_plan(store, request(source=DAY), changed, (), 0) == first
    second = find_or_plan(store, request(source=DAY, again=True), changed, (), 0)
    assert second != first
    assert second.plan().items == changed
    assert find_or_plan(store, request(source=DAY), changed, (), 0) == second


def test_each_again_is_a_run_of_its_own_and_the_newest_is_found() -> None:
    store = memory()
    seen = [found(store)]
    for _ in range(3):
        seen[-1].finish(result())
        seen.append(found(store, again=True))
    assert len({run.key for run in seen}) == 4
    assert found(store) == seen[-1]


def test_of_many_planners_at_once_all_get_one_plan() -> None:
    store = memory()
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda n: found(store, base=n), range(16)))
    assert len({run.key for run in runs}) == 1
    assert len({run.plan().base_version for run in runs}) == 1


# records


def test_records_are_written_once_and_the_first_stands(store: Store) -> None:
    run = found(store)
    first, second = Batch(number=1, trajectories=(trajectory(1),)), Batch(number=1, trajectories=(trajectory(2),))
    assert run.batch(1) is None
    assert run.start_batch(first) == first
    assert run.start_batch(second) == first
    assert Run(store, run.key).batch(1) == first
    assert run.finish(result(1)) == run.finish(result(2)) == result(1)


def test_states_are_listed_in_order_up_to_the_first_gap() -> None:
    run = found(memory())
    assert run.states() == []
    for number in (1, 2, 4):
        run.save_state(State(number=number, state={"n": number}))
    assert [state.number for state in run.states()] == [1, 2]


def test_more_than_nine_states_are_in_order() -> None:
    run = found(memory())
    for number in range(1, 13):
        run.save_state(State(number=number, state={}))
    assert [state.number for state in run.states()] == list(range(1, 13))


def test_a_store_without_the_run_says_so() -> None:
    with pytest.raises(StoreError, match="has no run nothing; is this the store"):
        Run(memory(), "nothing").plan()


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff", b"[]", b'{"key": 1}'])
@pytest.mark.parametrize("name", ["plan.json", "batch-0001.json", "state-0001.json", "result.json"])
def test_a_damaged_record_is_named_with_the_way_out(name: str, garbage: bytes) -> None:
    store = memory()
    run = Run(store, "k")
    store.create(run.path(name), garbage)
    reads = {"plan": run.plan, "batch": lambda: run.batch(1), "state": run.states, "result": run.result}
    with pytest.raises(StoreError, match=rf"runs/k/{name} cannot be read .*move the folder runs/k away"):
        reads[name.split("-")[0].removesuffix(".json")]()


def test_a_flow_run_finds_its_run_again(store: Store) -> None:
    run = found(store)
    assert run_of(store, "flow-1") is None
    run.note_flow_run("flow-1")
    run.note_flow_run("flow-1")
    assert run_of(store, "flow-1") == run
    assert store.list(run.path("flow-runs/")) == [run.path("flow-runs/flow-1")]


# batches


def planned(count: int, size: int) -> Plan:
    runs = [trajectory(n) for n in range(1, count + 1)]
    return plan(request=request(batch_size=size), items=tuple(Item(id=t.trace_id, digest=t.digest) for t in runs))


@given(st.integers(0, 40), st.integers(1, 15))
def test_batches_cover_the_plan_in_order(count: int, size: int) -> None:
    made = planned(count, size)
    runs = [trajectory(n) for n in range(count, 0, -1)]
    batches = [next_batch(made, number, runs) for number in range(1, made.batch_count + 1)]
    assert [run.trace_id for batch in batches for run in batch.trajectories] == [item.id for item in made.items]
    assert all(len(batch.trajectories) == size for batch in batches[:-1])
    assert [batch.number for batch in batches] == list(range(1, made.batch_count + 1))


def test_traces_that_have_come_since_the_plan_do_not_matter() -> None:
    runs = [trajectory(n) for n in range(1, 10)]
    assert next_batch(planned(3, 2), 2, runs).trajectories == (trajectory(3),)


def test_a_trace_that_is_gone_is_named_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"t02 is gone from the source .*put it back, or use --again"):
        next_batch(planned(3, 3), 1, [trajectory(1), trajectory(3)])


def test_a_trace_that_has_changed_is_named_with_the_way_out() -> None:
    runs = [trajectory(1), trajectory(2, task="Another question?"), trajectory(3)]
    with pytest.raises(UsageError, match=r"t02 has changed in the source .*use --again"):
        next_batch(planned(3, 3), 1, runs)


def test_a_trace_that_only_moved_is_the_same() -> None:
    runs = [trajectory(n, source="elsewhere") for n in (1, 2, 3)]
    assert len(next_batch(planned(3, 3), 1, runs).trajectories) == 3


def test_samples_make_batches_too() -> None:
    samples = [Sample(id=f"s{n}", context=f"Question {n}?", target="1") for n in range(3)]
    made = plan(items=tuple(Item(id=s.id, digest=s.digest) for s in samples))
    batch = next_batch(made, 1, samples)
    assert (batch.samples, batch.trajectories) == (tuple(samples), ())
    changed = [samples[0], samples[1].model_copy(update={"target": "2"}), samples[2]]
    with pytest.raises(UsageError, match="s1 has changed"):
        next_batch(made, 1, changed)


def test_a_request_survives_the_store() -> None:
    run = find_or_plan(memory(), request(source=DAY), items(1), (), 0)
    again = RunRequest.model_validate_json(run.plan().request.model_dump_json())
    assert again == run.plan().request
    assert again.source.day == date(2026, 3, 2)
