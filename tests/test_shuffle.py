"""Copies, shuffled and cut into groups: the paper's numbers, and what must hold for any."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from builders import group, reflection
from hypothesis import given
from hypothesis import strategies as st

from combee_core.config import Grouping, RunSettings
from combee_core.errors import UsageError
from combee_core.shuffle import (
    GROUPINGS,
    PAPER_UP_TO,
    auto_sizes,
    batch_seed,
    bounded_sizes,
    copies_met,
    group_count,
    group_sizes,
    paper_sizes,
    shuffle,
)
from combee_core.shuffle import deal as deal_into
from combee_core.types import Group, Reflection, ShuffleMode

T = TypeVar("T")
MODES: list[ShuffleMode] = ["paper", "spread"]


def deal(items: Sequence[T], copies: int, seed: int, mode: ShuffleMode = "paper") -> tuple[tuple[T, ...], ...]:
    """Into the paper's groups."""
    return deal_into(items, group_sizes(len(items), copies), copies, seed, mode)


def shuffled(reflections: Sequence[Reflection], seed: int = 0, **settings: Any) -> tuple[Group, ...]:
    return shuffle(reflections, RunSettings(**settings), seed)


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (4, [4] * 2),
        (9, [6] * 3),
        (10, [7, 7, 6]),
        (30, [12] * 5),
        (40, [14] * 2 + [13] * 4),
        (50, [15] * 2 + [14] * 5),
        (60, [18] + [17] * 6),
        (84, [19] * 6 + [18] * 3),
        (94, [21] * 8 + [20]),
        (100, [20] * 10),
        (1_000, [65] * 16 + [64] * 15),
        (10_000, [200] * 100),
    ],
)
def test_with_two_copies_the_groups_have_the_sizes_of_the_paper(n: int, sizes: list[int]) -> None:
    assert list(group_sizes(n, 2)) == sizes


def test_the_number_of_groups_is_the_root_of_the_original_number() -> None:
    assert [group_count(n) for n in (0, 1, 2, 3, 4, 5, 8, 9, 99, 100)] == [0, 1, 1, 1, 2, 2, 2, 3, 9, 10]


@pytest.mark.parametrize(("n", "groups"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (8, 2)])
@pytest.mark.parametrize("mode", MODES)
def test_at_the_edge_every_group_has_entries_and_sizes_differ_by_at_most_one(
    n: int, groups: int, mode: ShuffleMode
) -> None:
    for copies in 1, 2, 3:
        dealt = deal(range(n), copies, seed=1, mode=mode)
        assert len(dealt) == groups
        assert all(dealt)
        assert max(map(len, dealt), default=0) - min(map(len, dealt), default=0) <= 1


@given(st.integers(0, 400), st.integers(1, 5))
def test_sizes_add_up_and_the_larger_come_first(n: int, copies: int) -> None:
    sizes = group_sizes(n, copies)
    assert sum(sizes) == (n if n < 4 else n * copies)
    assert list(sizes) == sorted(sizes, reverse=True)
    assert not sizes or sizes[0] - sizes[-1] <= 1


def test_a_single_group_does_not_show_a_copy_twice() -> None:
    for mode in MODES:
        assert deal(["a"], 2, seed=0, mode=mode) == (("a",),)
        assert deal(["a", "b", "c"], 2, seed=0, mode=mode) == (("a", "b", "c"),)


def test_the_paper_mode_is_the_reference_shuffle() -> None:
    expected = ((2, 0, 0, 7, 2, 6), (1, 3, 5, 8, 5, 6), (7, 8, 4, 1, 4, 3))
    assert deal(range(9), 2, seed=0) == expected
    pool = list(range(9)) * 2
    random.Random(0).shuffle(pool)
    assert tuple(entry for dealt in expected for entry in dealt) == tuple(pool)


@given(st.integers(0, 120), st.integers(1, 4), st.integers(0, 10_000), st.sampled_from(MODES))
def test_every_entry_is_dealt_as_often_as_it_has_copies(n: int, copies: int, seed: int, mode: ShuffleMode) -> None:
    dealt = deal(range(n), copies, seed, mode)
    assert tuple(map(len, dealt)) == group_sizes(n, copies)
    times = Counter(entry for its in dealt for entry in its)
    assert times == dict.fromkeys(range(n), 1 if n < 4 else copies)
    assert deal(range(n), copies, seed, mode) == dealt


@pytest.mark.parametrize("n", [4, 9, 25])
def test_spread_puts_copies_into_different_groups_wherever_there_are_enough(n: int) -> None:
    for seed in range(300):
        for copies in range(1, group_count(n) + 1):
            for its in deal(range(n), copies, seed, "spread"):
                assert len(set(its)) == len(its)


def test_spread_with_more_copies_than_groups_still_deals_them_all() -> None:
    dealt = deal(range(5), 3, seed=0, mode="spread")
    assert [len(its) for its in dealt] == [8, 7]


def test_spread_depends_on_the_seed_and_leaves_no_one_in_a_fixed_place() -> None:
    assert len({deal(range(9), 2, seed, "spread") for seed in range(50)}) == 50
    firsts = {deal(range(9), 2, seed, "spread")[0][0] for seed in range(200)}
    assert firsts == set(range(9))


@pytest.mark.parametrize("copies", [0, -1])
def test_fewer_than_one_copy_is_wrong_use(copies: int) -> None:
    with pytest.raises(UsageError, match="copies of a reflection are too few"):
        deal(range(9), copies, seed=0)


def test_each_batch_has_a_seed_of_its_own_that_is_the_same_everywhere() -> None:
    seeds = [batch_seed(run, batch) for run in range(10) for batch in range(10)]
    assert len(set(seeds)) == 100
    assert batch_seed(0, 1) == 147_518_835_170_603


# groups of reflections


@given(st.permutations(range(12)), st.sampled_from(MODES))
def test_the_order_in_which_reflections_arrive_never_matters(order: list[int], mode: ShuffleMode) -> None:
    entries = [reflection(f"t{n:02d}", f"insight {n}") for n in range(12)]
    for grouping in GROUPINGS:
        settings = {"seed": 7, "shuffle": mode, "grouping": grouping}
        assert shuffled([entries[n] for n in order], **settings) == shuffled(entries, **settings)


def test_reflections_without_insight_enter_no_group_and_do_not_count() -> None:
    nothing = [reflection(f"n{n}", insight=" \n") for n in range(20)]
    taught = [reflection(f"t{n}") for n in range(4)]
    groups = shuffled([*nothing, *taught])
    assert [(one.number, one.of, len(one.entries)) for one in groups] == [(1, 2, 4), (2, 2, 4)]
    assert {entry.trace_id for one in groups for entry in one.entries} == {"t0", "t1", "t2", "t3"}
    assert shuffled(nothing) == ()


def test_one_reflection_with_two_copies_is_one_group_that_shows_it_once() -> None:
    (only,) = shuffled([reflection("t1")])
    assert only.entries == (reflection("t1"),)
    assert only.name == "curate-g01"


def test_the_share_of_copies_that_meet_is_reported() -> None:
    a, b, c = (reflection(name) for name in "abc")
    assert copies_met([]) == 0
    assert copies_met([group(a, b), group(a, b)]) == 0
    assert copies_met([group(a, a, b), group(b, c, c)]) == pytest.approx(2 / 3)


def test_in_paper_mode_about_a_sixth_of_the_copies_meet_at_forty() -> None:
    entries = [reflection(f"t{n:02d}") for n in range(40)]
    shares = [copies_met(shuffled(entries, seed)) for seed in range(300)]
    assert sum(shares) / 300 == pytest.approx(0.157, abs=0.015)
    assert {copies_met(shuffled(entries, seed, shuffle="spread")) for seed in range(20)} == {0}


# groups that do not grow with the batch


def test_bounded_groups_hold_at_most_so_many_entries_and_are_as_few_as_that_allows() -> None:
    assert bounded_sizes(40, 2, 8) == (8,) * 10
    assert bounded_sizes(41, 2, 8) == (8,) * 5 + (7,) * 6
    assert bounded_sizes(100, 1, 5) == (5,) * 20
    assert len(bounded_sizes(10_000, 2, 10)) == 2_000


@given(st.integers(0, 3_000), st.integers(1, 4), st.integers(2, 40))
def test_whatever_the_number_a_bounded_group_never_grows(n: int, copies: int, max_group: int) -> None:
    sizes = bounded_sizes(n, copies, max_group)
    if n >= 4:
        assert len(sizes) == max(1, -(-n * copies // max_group))
        assert sum(sizes) == (n * copies if len(sizes) > 1 else n)
        assert max(sizes) <= max_group
        assert sizes[0] - sizes[-1] <= 1


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_fewer_than_four_are_one_call_without_copies_in_any_grouping(grouping: Grouping, n: int) -> None:
    assert GROUPINGS[grouping](n, 2, 2) == (n,) * min(n, 1)


def test_what_fits_into_one_bounded_group_with_its_copies_is_read_once() -> None:
    (only,) = shuffled([reflection(f"t{n}") for n in range(4)], grouping="bounded", max_group=8)
    assert [entry.trace_id for entry in only.entries] == ["t0", "t1", "t2", "t3"]


def test_auto_makes_the_papers_groups_while_they_are_small_and_bounded_ones_beyond() -> None:
    assert auto_sizes(PAPER_UP_TO, 2, 8) == paper_sizes(PAPER_UP_TO, 2, 8)
    assert auto_sizes(PAPER_UP_TO + 1, 2, 8) == bounded_sizes(PAPER_UP_TO + 1, 2, 8)


@pytest.mark.parametrize("grouping", ["bounded", "auto"])
def test_copies_never_meet_in_a_bounded_group(grouping: str) -> None:
    entries = [reflection(f"t{n:04d}") for n in range(400)]
    groups = shuffled(entries, grouping=grouping, max_group=8, copies=2)
    assert (len(groups), {len(one.entries) for one in groups}) == (100, {8})
    assert copies_met(groups) == 0
    assert Counter(entry.trace_id for one in groups for entry in one.entries) == {r.trace_id: 2 for r in entries}


def test_without_a_number_there_are_two_copies_in_the_papers_groups_and_one_in_bounded_ones() -> None:
    entries = [reflection(f"t{n:03d}") for n in range(60)]
    for grouping, copies in (("paper", 2), ("bounded", 1)):
        times = Counter(entry.trace_id for one in shuffled(entries, grouping=grouping) for entry in one.entries)
        assert set(times.values()) == {copies}


def test_each_setting_of_the_groups_has_an_effect() -> None:
    entries = [reflection(f"t{n:03d}") for n in range(60)]
    plain = shuffled(entries, grouping="bounded")
    for change in {"max_group": 6}, {"copies": 2}, {"grouping": "paper"}, {"seed": 1}:
        assert shuffled(entries, **{"grouping": "bounded", **change}) != plain


def test_fewer_than_one_copy_is_wrong_use_in_bounded_groups_too() -> None:
    with pytest.raises(UsageError, match="copies of a reflection are too few"):
        bounded_sizes(9, 0, 8)
