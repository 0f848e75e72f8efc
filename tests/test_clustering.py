"""Clusters of texts that are alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combee_core.clustering import ALIKE, LARGEST, clusters, like_any
from combee_core.simulation.specifics import WAYS, Specific
from combee_core.simulation.world import World
from combee_core.tfidf import vectors

ROOT = Path(__file__).parents[1]
TEXTS = st.lists(st.text(st.sampled_from("abc 12"), max_size=12), max_size=12)


def wordings(rules: Sequence[Specific]) -> list[str]:
    return [rule.wording(way) for rule in rules for way in range(WAYS)]


@settings(deadline=None)
@given(TEXTS)
def test_every_text_is_in_exactly_one_cluster_and_equal_ones_in_the_same(texts: list[str]) -> None:
    found = clusters(texts)
    assert sorted(at for group in found for at in group) == list(range(len(texts)))
    assert found == sorted(sorted(group) for group in found)
    for group in found:
        assert all(texts.index(texts[at]) in group for at in group)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_texts_that_are_like_any_of_others_are_those_with_a_high_cosine(texts: list[str], others: list[str]) -> None:
    rows = vectors([*texts, *others])
    near = (rows[: len(texts)] @ rows[len(texts) :].T).toarray() if texts and others else np.zeros((len(texts), 0))
    assert like_any(texts, others) == [at for at, row in enumerate(near) if any(row >= ALIKE)]


def test_what_is_like_any_of_others_is_found_beyond_one_block() -> None:
    rules = list(World(2, 300).specifics)
    texts = wordings(rules)
    assert like_any(texts, [rule.wording(0) for rule in rules[::2]]) == [
        at for at in range(len(texts)) if at // WAYS % 2 == 0
    ]


@settings(deadline=None)
@given(TEXTS, st.randoms())
def test_the_order_of_the_texts_does_not_matter(texts: list[str], chance: object) -> None:
    order = list(range(len(texts)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    there = {frozenset(texts[at] for at in group) for group in clusters(texts)}
    assert {frozenset(texts[order[at]] for at in group) for group in clusters([texts[at] for at in order])} == there


def test_no_text_and_one_text() -> None:
    assert clusters([]) == []
    assert clusters(["a"]) == clusters(["", "a"])[:1] == [[0]]
    assert clusters(["a", "a", "a"]) == [[0, 1, 2]]


@pytest.mark.parametrize("count", [1, 2, 12, 120, 700])
def test_the_clusters_of_a_worlds_wordings_are_its_rules(count: int) -> None:
    rules = list(World(count, count).specifics)
    assert clusters(wordings(rules)) == [[WAYS * n + way for way in range(WAYS)] for n in range(count)]


def test_fewer_than_one_in_a_hundred_pairs_of_different_rules_is_alike() -> None:
    rules = list(World(9, 400).specifics)
    rows = vectors([rule.wording(n % WAYS) for n, rule in enumerate(rules)])
    near = (rows @ rows.T).toarray()[np.triu_indices(len(rules), 1)]
    assert np.mean(near >= ALIKE) < 0.01 / 100


def test_two_wordings_are_alike_where_nothing_else_is_there_to_compare_with() -> None:
    for rule in World(1, 100).specifics:
        for one, other in combinations(range(WAYS), 2):
            assert len(clusters([rule.wording(one), rule.wording(other)])) == 1


def line(count: int) -> np.ndarray:
    """Unit vectors in a row, each 30° from the next: neighbours are alike, the ends are not."""
    angles = np.radians(30) * np.arange(count)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def test_a_chain_of_like_texts_is_cut_where_its_ends_are_not_alike() -> None:
    texts = [f"text {n}" for n in range(6)]
    found = clusters(texts, alike=0.8, embed=lambda _: line(6))
    assert len(found) > 1
    assert all(len(group) <= 3 for group in found)
    assert clusters(texts, alike=0.8, embed=lambda _: line(2)[[0, 0, 0, 1, 1, 1]]) == [[0, 1, 2, 3, 4, 5]]


def test_an_embedding_model_may_take_the_place_of_the_pieces() -> None:
    asked: list[Sequence[str]] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        asked.append(texts)
        return np.array([[1.0, 0.0] if "percent" in text or "%" in text else [0.0, 1.0] for text in texts])

    assert clusters(["use percent", "round last", "write %", "use percent"], embed=embed) == [[0, 2, 3], [1]]
    assert asked == [["round last", "use percent", "write %"]]


def test_many_near_repeats_are_cut_into_parts_that_fit_in_memory() -> None:
    texts = [f"Error at line {n} of the log." for n in range(2 * LARGEST)]
    found = clusters(texts)
    assert max(map(len, found)) <= LARGEST
    assert sorted(at for group in found for at in group) == list(range(len(texts)))


# what it needs


def in_a_fresh_process(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("gone", ["numpy", "scipy"])
def test_without_numpy_or_scipy_the_way_out_is_named(gone: str) -> None:
    said = in_a_fresh_process(
        f"import sys; sys.modules[{gone!r}] = None\n"
        "from combee_core.clustering import clusters\nfrom combee_core.errors import UsageError\n"
        "print(clusters([]), clusters(['one']), clusters(['one', 'one']))\n"
        "try:\n    clusters(['one', 'two'])\nexcept UsageError as error:\n    print(error)"
    )
    assert said.splitlines()[0] == "[] [[0]] [[0, 1]]"
    assert "combee-pipeline[pipeline]" in said
    assert gone in said.splitlines()[1]


def test_it_is_loaded_in_the_background_once() -> None:
    said = in_a_fresh_process(
        "import sys, threading\nfrom combee_core.clustering import load_soon\nbefore = 'scipy' in sys.modules\n"
        "def mine():\n    return [one for one in threading.enumerate() if one.name == 'clustering']\n"
        "load_soon()\n[one.join() for one in mine()]\nloaded = 'scipy.cluster.hierarchy' in sys.modules\n"
        "load_soon()\nprint(before, loaded, len(mine()))"
    )
    assert said == "False True 0"


def test_what_is_missing_is_not_told_in_the_background() -> None:
    said = in_a_fresh_process(
        "import sys, threading; sys.modules['scipy'] = None\nfrom combee_core.clustering import load_soon\n"
        "load_soon()\n[one.join() for one in threading.enumerate() if one.name == 'clustering']\n"
        "print('numpy' in sys.modules)"
    )
    assert said == "True"
