"""Curate and merge calls, known before a batch starts."""

from __future__ import annotations

import pytest

from combee_core.call_counts import reduce_calls
from combee_core.config import RunSettings

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


def test_clusters_are_at_most_half_of_the_insights() -> None:
    curate, merge = reduce_calls((400,), RunSettings(grouping="bounded", max_group=8, copies=2, merge="cluster"))
    assert (curate, merge) == (100, 200)
