"""Day markers: which traces of a day were learned, and which are news."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import DAY, items, plan, request

from combee_core.config import RunRequest, Source
from combee_core.errors import StoreError
from combee_core.markers import DayMarker, News, mark, marker_of, news
from combee_core.ports import Store
from combee_core.records import Item, Plan

EMPTY = DayMarker(playbook="p", uris=("/traces",), timezone="UTC", day=date(2026, 3, 2))


def of_day(key: str, its: tuple[Item, ...], **source: Any) -> Plan:
    asked = request(source=DAY.model_copy(update=source), playbook=source.pop("playbook", "p"))
    return plan(key=key, request=asked, items=its)


def test_a_day_that_was_never_learned_has_a_marker_without_runs() -> None:
    found = marker_of(memory(), request(source=DAY))
    assert found == EMPTY
    assert (found.traces, news(found, items(2))) == (0, News(items=items(2)))


def test_a_marker_lists_the_traces_with_their_hashes_and_the_runs_that_learned_them(store: Store) -> None:
    mark(store, of_day("a", items(3)), 1)
    mark(store, of_day("b", items(5)[3:]), 2)
    found = marker_of(store, request(source=DAY))
    assert [(one.run, one.version, one.items) for one in found.runs] == [("a", 1, items(3)), ("b", 2, items(5)[3:])]
    assert (found.traces, found.has("a"), found.has("c")) == (5, True, False)


def test_marking_twice_is_marking_once() -> None:
    store = memory()
    assert mark(store, of_day("a", items(3)), 1) == mark(store, of_day("a", items(3)), 1)
    assert len(marker_of(store, request(source=DAY)).runs) == 1


def test_a_trace_that_has_changed_stands_in_the_marker_as_it_is_now() -> None:
    store = memory()
    mark(store, of_day("a", items(3)), 1)
    after = mark(store, of_day("b", items(1, "changed")), 2)
    assert [one.items for one in after.runs] == [items(3)[1:], items(1, "changed")]
    assert news(after, (*items(1, "changed"), *items(3)[1:])) == News()


def test_what_came_late_and_what_has_changed_is_news_and_what_is_gone_is_not() -> None:
    marker = EMPTY.after(of_day("a", items(3)))
    found = news(marker, (*items(1, "changed"), items(2)[1], items(4)[3]))
    assert found.items == (*items(1, "changed"), items(4)[3])
    assert found.changed == ("t01",)


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 2), min_size=1), max_size=5))
def test_after_any_runs_the_marker_knows_each_trace_as_it_was_last_learned(history: list[dict[int, int]]) -> None:
    marker, last = EMPTY, dict[int, int]()
    for number, learned in enumerate(history):
        its = tuple(Item(id=f"t{n}", digest=f"d{content}") for n, content in sorted(learned.items()))
        marker = marker.after(of_day(f"run-{number}", its))
        last |= learned
    assert marker.traces == len(last)
    assert news(marker, [Item(id=f"t{n}", digest=f"d{content}") for n, content in last.items()]) == News()


@pytest.mark.parametrize(
    "change", [{"day": date(2026, 3, 3)}, {"timezone": "Asia/Tokyo"}, {"uris": ("/other",)}, {"playbook": "q"}]
)
def test_playbook_source_day_and_zone_each_have_a_marker_of_their_own(change: dict[str, Any]) -> None:
    store = memory()
    mark(store, of_day("a", items(3), **change), 1)
    assert not marker_of(store, request(source=DAY)).runs


@pytest.mark.parametrize("change", [{"limit": 5}, {"ground_truth": False}])
def test_how_a_day_is_read_is_not_part_of_its_marker(change: dict[str, Any]) -> None:
    store = memory()
    mark(store, of_day("a", items(3), **change), 1)
    assert marker_of(store, request(source=DAY)).runs


def test_the_order_of_a_days_sources_does_not_matter_to_its_marker() -> None:
    store = memory()
    mark(store, of_day("a", items(3), uris=("/b", "/a")), 1)
    assert marker_of(store, request(source=DAY.model_copy(update={"uris": ("/a", "/b")}))).runs


def test_runs_that_mark_a_day_at_the_same_time_all_stand_in_it(store: Store) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: mark(store, of_day(f"run-{n}", (items(6)[n],)), n), range(6)))
    found = marker_of(store, request(source=DAY))
    assert {one.run for one in found.runs} == {f"run-{n}" for n in range(6)}
    assert found.traces == 6


def test_a_marker_that_cannot_be_read_is_named_and_not_replaced() -> None:
    store = memory()
    mark(store, of_day("a", items(1)), 1)
    (key,) = store.list("days/p/")
    store.delete(key)
    store.create(key, b'{"accounting": {}}')
    with pytest.raises(StoreError, match=r"2026-03-02\.json is no day marker"):
        mark(store, of_day("a", items(1)), 1)


def test_a_run_without_a_day_has_no_marker() -> None:
    with pytest.raises(ValueError, match="no day"):
        marker_of(memory(), RunRequest(source=Source(uris=("/x",))))
