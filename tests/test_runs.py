"""Run plans: found or made, advanced batch by batch, finished once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from lessons import trajectory
from run_records import items, plan, request

from combee_core.config import ModelSettings, RunRequest, SizeSettings, Source
from combee_core.cutting import next_batch
from combee_core.errors import StoreError
from combee_core.ports import Store
from combee_core.records import Batch, Cut, Item, RunResult, Sizing, State
from combee_core.runs import Run, find_or_plan, run_key, run_of
from combee_core.sizes import Decision, Observation
from combee_core.types import Sample, Trajectory, Unread

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
        {"sizes": SizeSettings(tau=0.5)},
        {"grouping": "bounded"},
        {"merge": "cluster"},
        {"levels": 3},
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
        {"shard_size": 1},
        {"dask": "tcp://127.0.0.1:8786"},
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
    assert len(run.states()) == 0
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
    reads = {"plan": run.plan, "batch": lambda: run.batch(1), "state": lambda: run.state(1), "result": run.result}
    with pytest.raises(StoreError, match=rf"runs/k/{name} cannot be read .*move the folder runs/k away"):
        reads[name.split("-")[0].removesuffix(".json")]()


def test_a_flow_run_finds_its_run_again(store: Store) -> None:
    run = found(store)
    assert run_of(store, "flow-1") is None
    run.note_flow_run("flow-1")
    run.note_flow_run("flow-1")
    assert run_of(store, "flow-1") == run
    assert store.list(run.path("flow-runs/")) == [run.path("flow-runs/flow-1")]


# batch sizes


def sizing(total: int, size: int | None, *profile: int) -> Sizing:
    return Sizing(total=total, profile=profile, batch_size=size)


@given(st.integers(0, 60), st.lists(st.integers(1, 9), max_size=3), st.integers(1, 15))
def test_the_parts_cover_everything_once_in_order(total: int, profile: list[int], size: int) -> None:
    made = sizing(max(total, sum(profile)), size, *profile)
    numbers = [n for batch in range(1, made.count + 1) for n in range(made.total)[made.part(batch)]]
    assert numbers == list(range(made.total))
    assert [made.part(n + 1).stop - made.part(n + 1).start for n in range(len(profile))] == profile


def test_until_the_size_is_decided_only_the_profile_is_known() -> None:
    assert sizing(100, None, 5, 10).count == 2
    assert sizing(100, 40, 5, 10).count == 5
    assert sizing(0, 40).count == 0


def test_the_batch_size_is_recorded_once_and_the_decision_completes_it() -> None:
    run = found(memory())
    assert (run.sizing(), run.decision()) == (None, None)
    run.begin_sizing(sizing(100, None, 5, 10))
    run.begin_sizing(sizing(100, 7))
    assert run.sizing() == sizing(100, None, 5, 10)
    chosen = Decision(batch_size=40, bound_by="plateau", reason="because", tau=0.016, peak="fit", total=100)
    assert run.decide(chosen) == chosen
    assert run.decide(chosen.model_copy(update={"batch_size": 80})) == chosen
    assert run.sizing() == sizing(100, 40, 5, 10).model_copy(update={"reason": "because"})


def test_sizes_that_are_measured_again_follow_the_profile_and_are_recorded_once() -> None:
    run = found(memory())
    run.begin_sizing(sizing(100, None, 5, 10))
    run.measure_again((5,))
    run.measure_again((10,))
    assert run.sizing() == sizing(100, None, 5, 10, 5)
    run.decide(Decision(batch_size=40, bound_by="plateau", reason="", tau=0.016, peak="fit", total=100))
    assert run.sizing() == sizing(100, 40, 5, 10, 5)


def test_delays_are_recorded_once_for_each_batch() -> None:
    run = found(memory())
    run.observe(1, Observation(batch_size=5, delay=2.5))
    run.observe(1, Observation(batch_size=5, delay=99.0))
    assert run.observations((1, 2)) == [Observation(batch_size=5, delay=2.5), None]


def test_states_are_counted_and_read_one_by_one() -> None:
    run = found(memory())
    assert (run.done, list(run.states())) == (0, [])
    for number in (1, 2):
        run.save_state(State(number=number, state={}))
    assert run.done == 2
    assert [state.number for state in run.states()] == [1, 2]
    assert run.states()[-1].number == 2


# place and patience


def test_place_and_patience_are_those_of_the_present_invocation_and_the_rest_is_as_planned() -> None:
    run = found(memory(), copies=3)
    assert run.settings() == run.plan().request.settings
    later = request(
        copies=1, dask="tcp://there:1", model=ModelSettings(model="other/model", rpm=7, timeout=1.5)
    ).settings
    run.adopt(later)
    run.adopt(later)
    now = run.settings()
    assert (now.dask, now.model.rpm, now.model.timeout) == ("tcp://there:1", 7, 1.5)
    assert (now.copies, now.model.model) == (3, "scripted/model")
    assert now.identity() == run.plan().request.settings.identity()


# batches


def test_a_batch_is_its_part_of_the_plan_as_the_source_gives_it() -> None:
    asked: list[Sequence[Item]] = []

    def pick(wanted: Sequence[Item]) -> tuple[Trajectory, ...]:
        asked.append(wanted)
        return tuple(trajectory(int(item.id[1:])) for item in wanted)

    batch = next_batch(plan(5), 2, sizing(5, 2), pick)
    assert asked == [items(5)[2:4]]
    assert (batch.number, [t.trace_id for t in batch.trajectories], batch.samples) == (2, ["t03", "t04"], ())


def test_samples_make_batches_too() -> None:
    samples = tuple(Sample(id=f"t{n:02d}", context=f"Question {n}?", target="1") for n in (1, 2, 3))
    batch = next_batch(plan(3), 1, sizing(3, 3), lambda wanted: samples[: len(wanted)])
    assert (batch.samples, batch.trajectories) == (samples, ())


def test_a_request_survives_the_store() -> None:
    run = find_or_plan(memory(), request(source=DAY), items(1), (), 0)
    again = RunRequest.model_validate_json(run.plan().request.model_dump_json())
    assert again == run.plan().request
    assert again.source.day == date(2026, 3, 2)


# broken off


CUT = Cut(batches=2, reason="budget: 9 of 9 calls", part="1 of 2 groups of batch 2")


def test_a_run_killed_after_the_state_of_a_part_is_broken_off_all_the_same() -> None:
    run = found(memory())
    for state in (State(number=1, state={}), State(number=2, state={}, cut=CUT)):
        run.save_state(state)
    assert run.cut() is None
    assert run.broken_off() == CUT
    assert (run.cut(), run.expected) == (CUT, 2), "what came with the state holds from now on"


def test_a_run_of_complete_batches_is_not_broken_off_and_the_first_cut_stands() -> None:
    run, complete = found(memory()), Cut(batches=1, reason="x")
    assert run.broken_off() is None
    run.save_state(State(number=1, state={}))
    assert run.broken_off() is None
    run.end_early(complete)
    assert run.broken_off() == complete
