"""The backlog: what was not learned from is filed until it is settled."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asking import memory
from run_records import KEY, items, plan, request

from combee_core.backlog import Entry, entries, file
from combee_core.ports import Store
from combee_core.records import Fate, TraceFate


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
