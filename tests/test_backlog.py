"""The backlog: what was not learned from is filed until it is settled."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from lessons import trajectory
from run_records import DAY, KEY, items, plan, request

from combee_core.adapters.filed import load_filed
from combee_core.backlog import (
    MOST_AT_ONCE,
    MOST_TRIES,
    Entry,
    day_of,
    drop,
    due,
    entries,
    file,
    gone_on_with,
    request_of,
    runs_named,
    standing,
)
from combee_core.config import Budget, RunRequest, Source
from combee_core.errors import UsageError
from combee_core.ports import Store
from combee_core.records import Batch, Fate, Item, Plan, RunResult, Sizing, TraceFate
from combee_core.runs import Run, begin


def fate(number: int, end: Fate, reason: str = "why") -> TraceFate:
    return TraceFate(trace_id=f"t{number:02d}", fate=end, reason=reason)


def filed(store: Store, playbook: str = "p") -> dict[str, str]:
    return {entry.trace_id: entry.fate for entry in entries(store, playbook)}


def test_what_was_refused_failed_or_deferred_is_filed_and_the_rest_is_not(store: Store) -> None:
    ends: list[Fate] = ["learned", "nothing", "skipped", "refused", "failed", "deferred"]
    file(store, plan(6), [fate(n, end) for n, end in enumerate(ends, start=1)])
    assert filed(store) == {"t04": "refused", "t05": "failed", "t06": "deferred"}


def test_an_entry_says_why_and_in_which_run(store: Store) -> None:
    file(store, plan(1), [fate(1, "failed", "AnswerMalformed: no JSON — ü")])
    assert list(entries(store, "p")) == [
        Entry(trace_id="t01", digest="d1", fate="failed", reason="AnswerMalformed: no JSON — ü", run=KEY)
    ]


@pytest.mark.parametrize("settled", [[fate(1, "learned")], [fate(1, "nothing")], []])
def test_a_trace_that_a_later_run_settles_is_taken_out_said_or_not(store: Store, settled: list[TraceFate]) -> None:
    file(store, plan(2), [fate(1, "failed"), fate(2, "deferred")])
    file(store, plan(2), [*settled, fate(2, "deferred")])
    assert filed(store) == {"t02": "deferred"}


def test_a_trace_that_fails_again_has_the_newest_reason(store: Store) -> None:
    file(store, plan(1), [fate(1, "deferred", "the run stopped first")])
    file(store, plan(1, key="b" * 20), [fate(1, "refused", "policy")])
    (entry,) = entries(store, "p")
    assert (entry.fate, entry.reason, entry.run) == ("refused", "policy", "b" * 20)


def test_filing_the_same_twice_changes_nothing(store: Store) -> None:
    for _ in range(2):
        file(store, plan(1), [fate(1, "failed")])
    assert filed(store) == {"t01": "failed"}


def test_another_nights_trace_of_the_same_id_is_another_trace(store: Store) -> None:
    file(store, plan(1), [fate(1, "failed")])
    file(store, plan(1, items=items(1, "of another night")), [fate(1, "learned")])
    assert filed(store) == {"t01": "failed"}


def test_each_playbook_has_a_backlog_of_its_own(store: Store) -> None:
    file(store, plan(1), [fate(1, "failed")])
    file(store, plan(1, request=request(playbook="q")), [fate(1, "learned")])
    assert filed(store) == {"t01": "failed"}
    assert filed(store, "q") == {}


def test_what_never_was_in_the_plan_is_not_filed(store: Store) -> None:
    file(store, plan(1), [TraceFate(trace_id="unread", fate="failed")])
    assert filed(store) == {}


def test_an_entry_that_cannot_be_read_is_left_out_and_replaced_by_the_next(store: Store) -> None:
    file(store, plan(1), [fate(1, "failed")])
    (key,) = store.list("backlog/p/")
    blob = store.read(key)
    assert blob
    store.replace(key, b"{", blob.tag)
    assert filed(store) == {}
    file(store, plan(1), [fate(1, "failed")])
    assert filed(store) == {"t01": "failed"}


def test_a_great_many_lie_in_few_objects_and_can_all_be_taken_out(store: Store) -> None:
    made = plan(600)
    file(store, made, [fate(n, "deferred") for n in range(1, 601)])
    assert len(filed(store)) == 600
    assert len(store.list("backlog/")) <= 256
    file(store, made, [fate(n, "learned" if n % 2 else "failed") for n in range(1, 601)])
    assert set(filed(store).values()) == {"failed"}
    assert len(filed(store)) == 300


class Counted:
    """A store that counts what is asked of it."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.asked = inner, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any) -> Any:
            self.asked[name] += 1
            return getattr(self.inner, name)(*args)

        return ask


def test_a_night_without_a_backlog_lists_once_and_reads_and_writes_nothing() -> None:
    counted = Counted(memory())
    file(counted, plan(600), [fate(n, "learned") for n in range(1, 601)])
    assert counted.asked == {"list": 1}


def test_settled_traces_ask_only_for_what_is_there() -> None:
    counted = Counted(memory())
    file(counted, plan(600), [fate(1, "failed")])
    counted.asked.clear()
    file(counted, plan(600), [fate(n, "learned") for n in range(1, 601)])
    assert counted.asked == {"list": 1, "read": 1, "replace": 1}
    assert filed(counted.inner) == {}


def test_runs_that_file_at_the_same_time_lose_nothing(store: Store) -> None:
    gate = threading.Barrier(4)

    def work(number: int) -> None:
        gate.wait(30)
        own = items(200)[50 * number : 50 * (number + 1)]
        file(store, plan(items=own), [fate(n, "failed") for n in range(1, 201)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(filed(store)) == 200


# tried again


def run_on(store: Store, count: int, key: str = KEY, finished: bool = True) -> Run:
    """A run on traces of which all but the last batch of two has begun."""
    run = begin(store, plan_on(count, key))
    run.begin_sizing(Sizing(total=count, batch_size=2))
    for number in range(1, count // 2):
        some = (trajectory(2 * number - 1), trajectory(2 * number))
        run.start_batch(Batch(number=number, trajectories=some))
    if finished:
        run.finish(RunResult(playbook="p", version=1, digest="d"))
    return run


def plan_on(count: int, key: str = KEY) -> Plan:
    all_of_them = (trajectory(number) for number in range(1, count + 1))
    return plan(count, key=key, items=tuple(Item(id=one.trace_id, digest=one.digest) for one in all_of_them))


def again(store: Store, *names: str, key: str = "b" * 20) -> tuple[RunRequest, Plan]:
    """The request and the plan of a run on these entries of the backlog."""
    chosen = [entry for entry in entries(store, "p") if not names or entry.trace_id in names]
    asked = request_of(request().model_copy(update={"store": store.uri}), chosen)
    return asked, Plan(key=key, request=asked, base_version=0, items=load_filed(asked.source.uris).items)


def test_an_entry_knows_where_its_content_lies_once_its_batch_has_begun() -> None:
    store = memory()
    run = run_on(store, 6)
    file(store, plan_on(6), [fate(1, "failed"), fate(4, "refused"), fate(6, "deferred")])
    places = {entry.trace_id: entry.place for entry in entries(store, "p")}
    assert places == {"t01": run.path("batch-0001.json"), "t04": run.path("batch-0002.json"), "t06": ""}


def test_what_is_due_belongs_to_a_finished_run_has_a_content_and_was_not_tried_too_often() -> None:
    store = memory()
    run_on(store, 6)
    run_on(store, 6, "c" * 20, finished=False)
    file(store, plan_on(6), [fate(1, "failed"), fate(6, "failed")])
    unfinished = plan_on(6, "c" * 20)
    file(store, unfinished.model_copy(update={"items": unfinished.items[2:3]}), [fate(3, "failed")])
    reasons = {entry.trace_id: reason for entry, reason in standing(store, entries(store, "p"))}
    assert reasons == {
        "t01": "",
        "t03": f"its run is not finished: combee rerun {'c' * 20}",
        "t06": "its content is not in the store: learn it from its source again",
    }
    assert [entry.trace_id for entry in due(store, "p")] == ["t01"]
    assert due(store, "p", {KEY}) == [], "what tonight's runs have filed waits for tomorrow"


@pytest.mark.parametrize("left", ["", "plan.json result.json", "plan.json"])
def test_an_entry_whose_run_or_content_is_gone_is_not_due_and_names_no_run_to_rerun(left: str) -> None:
    store = memory()
    run = run_on(store, 6)
    file(store, plan_on(6), [fate(1, "failed"), fate(6, "deferred")])
    for key in store.list(run.path("")):
        if key.rpartition("/")[2] not in left.split():
            store.delete(key)
    reasons = [reason.partition(":")[0] for _, reason in standing(store, entries(store, "p"))]
    waits = "its run is not finished" if left == "plan.json" else "its content is not in the store"
    assert sorted(reasons) == sorted(["its content is not in the store", waits])
    assert due(store, "p") == []


def test_an_entry_that_a_later_run_filed_again_is_not_due_without_the_record_that_holds_it() -> None:
    store = memory()
    first = run_on(store, 4)
    file(store, plan_on(4), [fate(1, "failed")])
    _, made = again(store)
    begin(store, made).finish(RunResult(playbook="p", version=1, digest="d"))
    file(store, made, [fate(1, "failed")])
    assert len(due(store, "p")) == 1
    assert runs_named(store) == {first.key, made.key}
    store.delete(first.path("batch-0001.json"))
    assert due(store, "p") == []


def test_a_trace_is_tried_so_often_and_then_stays_for_a_person() -> None:
    store = memory()
    run_on(store, 4)
    file(store, plan_on(4), [fate(1, "refused")])
    for number in range(MOST_TRIES):
        assert len(due(store, "p")) == 1
        key = f"{number:020d}"
        _, made = again(store, key=key)
        Run(store, key).finish(RunResult(playbook="p", version=1, digest="d"))
        for _ in range(2):
            file(store, made, [fate(1, "refused", f"the {number}th time")])
    assert due(store, "p") == []
    (entry,) = entries(store, "p")
    assert (entry.tries, entry.reason) == (MOST_TRIES, "the 2th time"), "filed twice by one run, it was tried once"
    assert entry.place == f"runs/{KEY}/batch-0001.json", "its content stays where it was"
    ((_, reason),) = standing(store, [entry])
    assert "retry, or drop" in reason
    ((_, ready),) = standing(store, [entry], most=99)
    assert ready == ""


def test_what_is_tried_again_is_of_the_oldest_day_that_it_came_from() -> None:
    store = memory()
    for number, day in ((1, date(2026, 3, 4)), (2, date(2026, 3, 2)), (3, None)):
        of_a_day = request(source=Source(uris=("/traces",), day=day))
        file(store, plan(request=of_a_day, items=items(number)[-1:]), [fate(number, "failed")])
    ended = {entry.trace_id: entry for entry in entries(store, "p")}
    assert [ended[name].day for name in ("t01", "t02", "t03")] == [date(2026, 3, 4), date(2026, 3, 2), None]
    assert day_of(store, request_of(request(), list(ended.values()))) == date(2026, 3, 2)
    assert day_of(store, request_of(request(), [ended["t01"], ended["t03"]])) == date(2026, 3, 4)
    assert day_of(store, request_of(request(), [ended["t03"]])) is None
    assert day_of(store, request(source=DAY)) == DAY.day


def test_a_day_stays_known_however_often_it_is_tried_in_vain() -> None:
    store = memory()
    run_on(store, 4)
    file(store, plan_on(4).model_copy(update={"request": request(source=DAY)}), [fate(1, "refused")])
    _, made = again(store)
    file(store, made, [fate(1, "refused", "still")])
    (entry,) = entries(store, "p")
    assert (entry.reason, entry.tries, entry.day) == ("still", 1, DAY.day)


@pytest.mark.parametrize(("end", "left"), [("learned", 0), ("nothing", 0), ("skipped", 1), ("failed", 1)])
def test_an_entry_is_taken_out_when_its_trace_is_learned_or_teaches_nothing(end: str, left: int) -> None:
    store = memory()
    run_on(store, 4)
    file(store, plan_on(4), [fate(1, "failed")])
    _, made = again(store)
    file(store, made, [fate(1, end)])
    assert len(filed(store)) == left


def test_the_input_is_read_from_the_records_of_the_batches() -> None:
    store = memory()
    run_on(store, 6)
    file(store, plan_on(6), [fate(n, "failed") for n in (1, 2, 4)])
    asked, made = again(store, "t01", "t04")
    found = load_filed(asked.source.uris)
    assert [item.id for item in found.items] == ["t01", "t04"]
    assert found.pick(made.items) == (trajectory(1), trajectory(4))
    drop(store, "p", [entry for entry in entries(store, "p") if entry.trace_id == "t01"])
    assert filed(store) == {"t02": "failed", "t04": "failed"}
    with pytest.raises(UsageError, match="t01 is not in the backlog any more"):
        load_filed(asked.source.uris).pick(made.items)


def test_a_record_that_is_gone_is_named() -> None:
    store = memory()
    run = run_on(store, 4)
    file(store, plan_on(4), [fate(1, "failed")])
    asked, made = again(store)
    store.delete(run.path("batch-0001.json"))
    with pytest.raises(UsageError, match="t01"):
        load_filed(asked.source.uris).pick(made.items)


def test_a_run_on_the_backlog_is_failed_by_no_number_of_failures_and_measures_nothing() -> None:
    asked = request_of(request(batch_size="auto", max_failed=0.05), [])
    assert asked.source.kind == "backlog"
    assert asked.again
    assert (asked.settings.max_failed, asked.settings.batch_size) == (1.0, asked.settings.sizes.fallback)
    assert request_of(request(batch_size=7), []).settings.batch_size == 7
    breakers = {one.breaker for one in asked.settings.model.everyone}
    assert min(breakers) > 4 * MOST_AT_ONCE, "twenty in a row were refused before"


def test_a_try_that_had_begun_goes_on_with_the_present_caps_and_is_failed_by_no_number_of_failures() -> None:
    begun = request_of(request(batch_size=7, budget=Budget(calls=5)), [])
    now = gone_on_with(begun, request(batch_size=9, budget=Budget(calls=1000), on_budget="publish", max_failed=0.0))
    assert (now.settings.budget, now.settings.on_budget) == (Budget(calls=1000), "publish")
    assert (now.settings.max_failed, now.settings.batch_size, now.source) == (1.0, 7, begun.source)
    assert now.settings.model.breaker > 4 * MOST_AT_ONCE


def test_what_is_taken_up_elsewhere_is_not_due() -> None:
    store = memory()
    run_on(store, 4)
    file(store, plan_on(4), [fate(1, "failed"), fate(2, "deferred")])
    assert [entry.trace_id for entry in due(store, "p", taken={Item(id="t02", digest=trajectory(2).digest)})] == ["t01"]
    assert len(due(store, "p", taken={Item(id="t02", digest="of another content")})) == 2


def test_of_two_traces_of_one_id_one_is_tried_and_of_very_many_some() -> None:
    store = memory()
    made = Run(store, KEY)
    made.begin_sizing(Sizing(total=MOST_AT_ONCE + 5, batch_size=MOST_AT_ONCE + 5))
    made.start_batch(Batch(number=1))
    made.finish(RunResult(playbook="p", version=1, digest="d"))
    many = plan(MOST_AT_ONCE + 5)
    file(store, many, [TraceFate(trace_id=item.id, fate="failed") for item in many.items])
    file(store, plan(1, items=items(1, "of another night")), [fate(1, "failed")])
    chosen = due(store, "p")
    assert len(chosen) == MOST_AT_ONCE
    assert len({entry.trace_id for entry in chosen}) == MOST_AT_ONCE
