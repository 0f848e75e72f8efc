"""Curate and merge calls, known before a batch starts."""

from __future__ import annotations

import pytest

from combee_core.call_counts import reduce_calls
from combee_core.config import MergeForm, RunSettings

PAPER = RunSettings(grouping="paper", merge="paper")


@pytest.mark.parametrize(
    ("n", "calls"), [(0, (0, 0)), (1, (1, 0)), (3, (1, 0)), (4, (2, 1)), (40, (6, 1)), (100, (10, 1)), (1000, (31, 1))]
)
def test_the_papers_form_takes_root_n_curate_calls_and_one_merge(n: int, calls: tuple[int, int]) -> None:
    assert reduce_calls((n,), PAPER) == calls


def test_batches_add_up() -> None:
    assert reduce_calls((5, 10, 20, 40), PAPER) == (2 + 3 + 4 + 6, 4)


def test_bounded_groups_grow_with_n() -> None:
    bounded = RunSettings(grouping="bounded", max_group=8, copies=2, merge="paper")
    assert reduce_calls((400,), bounded) == (100, 1)


@pytest.mark.parametrize(("k", "levels", "calls"), [(40, 3, 7), (9, 3, 4), (8, 4, 7), (9, 4, 7), (2, 5, 1), (1, 3, 0)])
@pytest.mark.parametrize("merge", ["paper", "auto"])
def test_rounds_are_counted_call_by_call(k: int, levels: int, calls: int, merge: MergeForm) -> None:
    """Nine groups on four levels take 4 calls, but 7 where one of them has nothing to say."""
    settings = RunSettings(grouping="bounded", max_group=5, copies=1, merge=merge, levels=levels)
    assert reduce_calls((5 * k,), settings) == (k, calls)


@pytest.mark.parametrize("merge", ["cluster", "auto"])
def test_how_many_clusters_there_will_be_nobody_knows(merge: MergeForm) -> None:
    settings = RunSettings(grouping="bounded", max_group=8, copies=2, merge=merge)
    assert reduce_calls((400,), settings) == (100, None)
    assert reduce_calls((3, 400), settings) == (101, None)
    assert reduce_calls((1, 3), settings) == (2, 0)
