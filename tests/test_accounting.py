"""Exactly one fate for each trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lessons import reflection
from run_records import items, learned, plan

from combee_core.accounting import account, fates_of, skipped, unsolved
from combee_core.errors import RunError
from combee_core.records import Fate, Plan, TraceFate
from combee_core.types import Curated, Delta, Group, Reflected, RolledOut, Unread


def insight(number: int) -> Reflected:
    return Reflected(trace_id=f"t{number:02d}", fate="insight", reflection=reflection(number))


def group(number: int, *numbers: int) -> Group:
    return Group(number=number, of=2, entries=tuple(reflection(n) for n in numbers))


def curated(number: int, *refused: int) -> Curated:
    return Curated(group=number, delta=Delta(), refused=tuple(f"t{n:02d}" for n in refused))


def fates(*args: object) -> dict[str, str]:
    return {f.trace_id: f.fate for f in fates_of(*args)}  # type: ignore[arg-type]


def test_an_insight_that_a_curator_read_is_learned_from() -> None:
    assert fates([insight(1)], [group(1, 1)], [curated(1)]) == {"t01": "learned"}


def test_a_trace_whose_one_copy_was_read_is_learned_from() -> None:
    groups, results = [group(1, 1, 2), group(2, 1, 2)], [curated(1, 1), curated(2)]
    assert fates([insight(1), insight(2)], groups, results) == {"t01": "learned", "t02": "learned"}


def test_a_trace_that_no_curator_would_read_is_refused_with_the_reason() -> None:
    groups, results = [group(1, 1, 2), group(2, 1, 2)], [curated(1, 1), curated(2, 1)]
    assert fates([insight(1), insight(2)], groups, results) == {"t01": "refused", "t02": "learned"}
    assert fates_of([insight(1)], groups, results)[0].reason == "refused by the curator"


def test_a_trace_whose_groups_were_not_curated_is_deferred() -> None:
    assert fates([insight(1), insight(2)], [group(1, 1), group(2, 2)], [curated(2)]) == {
        "t01": "deferred",
        "t02": "learned",
    }


def test_a_trace_that_one_curator_refused_and_another_never_got_is_refused() -> None:
    assert fates([insight(1)], [group(1, 1), group(2, 1)], [curated(1, 1)]) == {"t01": "refused"}


@pytest.mark.parametrize("fate", ["nothing", "skipped", "refused", "failed"])
def test_what_the_reflection_ended_in_stands_with_its_reason(fate: str) -> None:
    result = Reflected.model_validate({"trace_id": "t01", "fate": fate, "reason": "because"})
    (found,) = fates_of([result], [], [])
    assert (found.fate, found.reason) == (fate, "because")


def test_fates_are_sorted_by_trace() -> None:
    assert [f.trace_id for f in fates_of([insight(3), insight(1)], [], [])] == ["t01", "t03"]


def test_samples_without_a_trajectory_are_refused_with_the_reason() -> None:
    rolled = [RolledOut(sample_id="s1", reason="filtered"), RolledOut(sample_id="s2", trajectory=None, reason="no")]
    assert [(f.trace_id, f.fate, f.reason) for f in unsolved(rolled)] == [
        ("s1", "refused", "filtered"),
        ("s2", "refused", "no"),
    ]


def test_runs_that_were_not_read_are_skipped_and_files_of_unknown_format_count_nowhere() -> None:
    unread = [Unread(where="a.json", reason="cut", trace_id="x1"), Unread(where="b.bin", reason="unknown format")]
    assert [f.trace_id for f in skipped(unread)] == ["x1"]
    table, unsettled = account(plan(1, unread=tuple(unread)), learned(1))
    assert (table.total, table.learned, table.skipped) == (2, 1, 1)
    assert [(f.trace_id, f.reason) for f in unsettled] == [("x1", "cut (a.json)")]


def test_what_no_batch_has_settled_is_deferred() -> None:
    table, unsettled = account(plan(3), learned(2))
    assert (table.total, table.learned, table.deferred) == (3, 1, 2)
    assert [(f.trace_id, f.fate) for f in unsettled] == [("t01", "deferred"), ("t03", "deferred")]


def test_a_trace_with_two_fates_is_an_error() -> None:
    with pytest.raises(RunError, match="does not add up: 1 traces came in"):
        account(plan(1), (*learned(1), TraceFate(trace_id="t01", fate="failed")))


def test_a_fate_of_a_trace_that_never_came_in_is_an_error() -> None:
    with pytest.raises(RunError, match="does not add up: 2 traces came in"):
        account(plan(2), learned(1, 2, 3))


def test_an_empty_plan_balances() -> None:
    table, unsettled = account(plan(0), ())
    assert (table.total, unsettled) == (0, ())
    assert table.balances


ENDS: tuple[Fate | None, ...] = ("learned", "nothing", "skipped", "refused", "failed", "deferred", None)


@given(st.lists(st.sampled_from(ENDS), max_size=30), st.lists(st.booleans(), max_size=10))
def test_the_table_adds_up_whatever_became_of_the_traces(ends: list[Fate | None], runs: list[bool]) -> None:
    unread = tuple(
        Unread(where=f"f{n}", reason="r", trace_id=f"x{n}" if is_run else "") for n, is_run in enumerate(runs)
    )
    made = Plan(**{**dict(plan(0)), "items": items(len(ends)), "unread": unread})
    settled = [TraceFate(trace_id=f"t{n:02d}", fate=end) for n, end in enumerate(ends, start=1) if end]
    table, unsettled = account(made, settled)
    assert table.balances
    assert table.total == len(ends) + sum(runs) == len(unsettled) + table.learned + table.nothing
    assert len(unsettled) == len({fate.trace_id for fate in unsettled})
    assert not any(fate.is_settled for fate in unsettled)
    for name in ("learned", "nothing", "refused", "failed"):
        assert getattr(table, name) == ends.count(name)
    assert table.skipped == ends.count("skipped") + sum(runs)
    assert table.deferred == ends.count("deferred") + ends.count(None)


@given(
    st.integers(0, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.lists(st.integers(1, max(n, 1)), max_size=6), max_size=4),
            st.lists(st.booleans(), min_size=4, max_size=4),
            st.sets(st.integers(1, max(n, 1))),
        )
    )
)
def test_every_insight_has_exactly_one_fate_however_the_groups_end(
    drawn: tuple[int, list[list[int]], list[bool], set[int]],
) -> None:
    count, dealt, done, refusals = drawn
    groups = [group(g, *numbers) for g, numbers in enumerate(dealt, start=1) if count]
    results = [
        curated(g.number, *(n for n in refusals if f"t{n:02d}" in {e.trace_id for e in g.entries}))
        for g in groups
        if done[g.number - 1]
    ]
    found = fates_of([insight(n) for n in range(1, count + 1)], groups, results)
    assert [f.trace_id for f in found] == [f"t{n:02d}" for n in range(1, count + 1)]
    read = {e.trace_id for g in groups if done[g.number - 1] for e in g.entries} - {f"t{n:02d}" for n in refusals}
    assert {f.trace_id for f in found if f.fate == "learned"} == read
