"""The second level of the reduce: which calls it asks for, and that nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from builders import add, bullet, operation
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import insight
from run_records import receipt

from combee_core.errors import UsageError
from combee_core.fates import side_by_side, untouched
from combee_core.forms import FORMS, ONE_CALL_UP_TO
from combee_core.joining import joined
from combee_core.pieces import MOST, most_calls, round_of
from combee_core.reduction import Reduction
from combee_core.simulation.world import World
from combee_core.types import Conflict, Delta, Merged, Operation, SetAside

RULES = list(World(8, 60).specifics)
FIRST = bullet("calc-00001", "Be careful with fees.")
Part = tuple[Operation, ...]


def said(rule: int, way: int, trace: str, group: int = 1) -> Operation:
    return add(RULES[rule].wording(way), trace, origin=f"curate-g{group:02d}")


def groups(*per_group: Sequence[Operation]) -> list[Delta]:
    """A delta for each list, as the curators of groups 1, 2, … wrote it."""
    return [
        Delta(operations=tuple(op.model_copy(update={"origin": f"curate-g{n:02d}"}) for op in ops))
        for n, ops in enumerate(per_group, start=1)
    ]


def whole(part: Part) -> Delta:
    """A merger that makes one of everything that it reads."""
    return joined(part)


def done(reduction: Reduction, merger: Callable[[Part], Delta] = untouched) -> tuple[Merged, list[list[Part]]]:
    """The result, and the parts of each round."""
    rounds = []
    while parts := reduction.parts:
        rounds.append([part for _, part in parts])
        reduction.take([Merged(delta=merger(part), receipts=(receipt(name, stage="merge"),)) for name, part in parts])
    return reduction.result(), rounds


def texts(operations: Sequence[Operation]) -> list[str]:
    return [op.text for op in operations]


def ends(delta: Delta) -> list[str | None]:
    return [None if fate.into is None else delta.operations[fate.into].text for fate in delta.fates]


def lessons(*numbers: int) -> list[Operation]:
    return [add(insight(n), f"t{n:02d}") for n in numbers]


# in any form


@pytest.mark.parametrize("merge", FORMS)
@pytest.mark.parametrize("deltas", [[], [Delta()], groups(lessons(1, 2)), groups([], lessons(1), [])])
def test_one_groups_operations_alone_need_no_call(merge: Any, deltas: list[Delta]) -> None:
    result, rounds = done(Reduction(deltas, merge))
    assert rounds == []
    assert result.delta.operations == tuple(op for delta in deltas for op in delta.operations)
    assert [fate.fate for fate in result.delta.fates] == ["kept"] * len(result.delta.operations)


@pytest.mark.parametrize("merge", FORMS)
def test_what_the_groups_set_aside_is_kept(merge: Any) -> None:
    aside = SetAside(what="x", reason="unknown key")
    first, second = groups(lessons(1), lessons(2))
    result, _ = done(Reduction([first, second.model_copy(update={"set_aside": (aside,)})], merge))
    assert result.delta.set_aside == (aside,)


def random_groups(chance: Any, count: int) -> list[Delta]:
    """Rules in all wordings, changes and removals of a few bullets, by a few traces, dealt into groups."""
    made: list[list[Operation]] = [[] for _ in range(count)]
    for n in range(chance.randrange(40)):
        trace = f"t{chance.randrange(9)}"
        rule = said(chance.randrange(5), chance.randrange(3), trace)
        its = bullet(f"calc-{chance.randrange(3):05d}", "Mind the rules.")
        kinds = [rule, rule, rule, operation("UPDATE", rule.text, its, sources=(trace,)), add(insight(n), trace)]
        made[chance.randrange(count)].append(chance.choice([*kinds, operation("REMOVE", "", its, sources=(trace,))]))
    return groups(*made)


def erratic(chance: Any) -> Callable[[Part], Delta]:
    """A merger that drops some, joins some and passes the rest on."""

    def merger(part: Part) -> Delta:
        fate = [chance.choice(["drop", "join", "pass"]) for _ in part]
        gone = [at for at, word in enumerate(fate) if word == "drop"]
        one = [at for at, word in enumerate(fate) if word == "join"]
        rest = [at for at, word in enumerate(fate) if word == "pass"]
        dropped = untouched([part[at] for at in gone]).fates
        lost = (f.model_copy(update={"fate": "dropped", "into": None, "because": "no"}) for f in dropped)
        pieces = [(gone, Delta(fates=tuple(lost))), (rest, untouched([part[at] for at in rest]))]
        return side_by_side([*pieces, (one, joined([part[at] for at in one]))] if one else pieces)

    return merger


@settings(deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False), st.sampled_from([("paper", 2), ("paper", 4), ("cluster", 2), ("auto", 2)]))
def test_every_operation_that_enters_has_one_fate_and_no_source_is_invented(chance: Any, form: Any) -> None:
    deltas = random_groups(chance, 5)
    result, rounds = done(Reduction(deltas, *form), erratic(chance))
    entered = [op for delta in deltas for op in delta.operations]
    delta = result.delta
    assert [(fate.text, fate.origin) for fate in delta.fates] == [(op.text, op.origin) for op in entered]
    for op, fate in zip(entered, delta.fates, strict=True):
        assert (fate.into is None) == (fate.fate == "dropped")
        if fate.into is not None:
            assert {*op.sources} <= {*delta.operations[fate.into].sources}
    assert {fate.into for fate in delta.fates} - {None} == set(range(len(delta.operations)))
    assert len(result.receipts) == sum(map(len, rounds))
    assert len(result.between) == max(0, len(rounds) - 1)


@settings(deadline=None, max_examples=30)
@given(st.randoms(use_true_random=False), st.sampled_from(["paper", "cluster", "auto"]))
def test_the_order_in_which_groups_come_does_not_matter(chance: Any, merge: Any) -> None:
    deltas = random_groups(chance, 12)
    expected = done(Reduction(deltas, merge), whole)
    chance.shuffle(deltas)
    assert done(Reduction(deltas, merge), whole) == expected


def test_there_is_no_result_before_all_parts_are_taken_and_no_answer_too_few() -> None:
    reduction = Reduction(groups(lessons(1), lessons(2)), "paper")
    with pytest.raises(ValueError, match="1 merge calls are still to be made"):
        reduction.result()
    with pytest.raises(ValueError, match="zip"):
        reduction.take([])
    ((_, part),) = reduction.parts
    reduction.take([Merged(delta=untouched(part))])
    assert reduction.parts == ()


# paper, and rounds


def test_the_papers_form_is_one_call_that_reads_everything_in_the_groups_order() -> None:
    result, rounds = done(Reduction(groups(lessons(1, 2), lessons(3), lessons(2)), "paper"))
    assert [[texts(part) for part in parts] for parts in rounds] == [[[insight(n) for n in (1, 2, 3, 2)]]]
    assert result.between == ()
    assert texts(result.delta.operations) == [insight(n) for n in (1, 2, 3, 2)]


def test_group_ten_comes_after_group_two() -> None:
    deltas = [Delta(operations=(add(insight(n), f"t{n}", origin=f"curate-g{n:02d}"),)) for n in (10, 2, 100)]
    ((_, part),) = Reduction(deltas, "paper").parts
    assert texts(part) == [insight(n) for n in (2, 10, 100)]


@pytest.mark.parametrize(
    ("count", "levels", "calls"),
    [
        (9, 2, [1]),
        (9, 3, [3, 1]),
        (100, 3, [10, 1]),
        (10, 3, [3, 1]),
        (2, 3, [1]),
        (3, 3, [1, 1]),
        (27, 4, [9, 3, 1]),
        (8, 4, [4, 2, 1]),
    ],
)
def test_more_levels_merge_in_rounds_whose_fan_in_is_a_root(count: int, levels: int, calls: list[int]) -> None:
    deltas = groups(*([op] for op in lessons(*range(count))))
    result, rounds = done(Reduction(deltas, "paper", levels))
    assert [len(parts) for parts in rounds] == calls
    assert [len(delta.operations) for delta in result.between] == [count] * (len(calls) - 1)
    assert ends(result.delta) == [insight(n) for n in range(count)]


def test_calls_are_numbered_through_all_rounds_and_named_after_theirs() -> None:
    result, _ = done(Reduction(groups(*([op] for op in lessons(*range(27)))), "paper", 4))
    names = [one.item for one in result.receipts]
    assert names[:2] == ["merge-m01", "merge-m02"]
    assert names[8:] == ["merge-m09", "merge-r2-m10", "merge-r2-m11", "merge-r2-m12", "merge-r3-m13"]
    assert [round_of(name) for name in names] == [1] * 9 + [2] * 3 + [3]


@settings(deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(0, 30), st.integers(2, 5))
def test_there_are_never_more_calls_than_were_foretold(chance: Any, count: int, levels: int) -> None:
    deltas = groups(*([op][: chance.randrange(4)] for op in lessons(*range(count))))
    result, _ = done(Reduction(deltas, "paper", levels), erratic(chance))
    assert len(result.receipts) <= most_calls(count, levels)


def test_each_round_reads_what_the_round_before_wrote() -> None:
    deltas = groups(*([op] for op in lessons(*range(9))))
    result, rounds = done(Reduction(deltas, "paper", 3), whole)
    assert [len(part) for part in rounds[1]] == [3]
    assert [len(delta.operations) for delta in result.between] == [3]
    assert len(result.delta.operations) == 1
    assert {fate.fate for fate in result.delta.fates} == {"merged"}
    assert result.delta.operations[0].sources == tuple(sorted(f"t{n:02d}" for n in range(9)))


def test_a_round_in_which_everything_was_dropped_ends_the_merge() -> None:
    def nothing(part: Part) -> Delta:
        return Delta(fates=tuple(f.model_copy(update={"fate": "dropped", "into": None}) for f in untouched(part).fates))

    result, rounds = done(Reduction(groups(*([op] for op in lessons(*range(9)))), "paper", 3), nothing)
    assert len(rounds) == 1
    assert ends(result.delta) == [None] * 9


# clusters


def test_what_is_like_nothing_else_passes_without_a_call() -> None:
    result, rounds = done(Reduction(groups(lessons(1, 2), lessons(3)), "cluster"))
    assert rounds == []
    assert [(fate.fate, fate.because) for fate in result.delta.fates] == [("kept", "")] * 3


def test_the_same_words_of_several_traces_are_joined_by_code() -> None:
    result, rounds = done(Reduction(groups([said(0, 0, "t1")], [said(0, 0, "t2"), said(1, 0, "t3")]), "cluster"))
    assert rounds == []
    assert [(op.text, op.sources) for op in result.delta.operations] == [
        (RULES[0].wording(0), ("t1", "t2")),
        (RULES[1].wording(0), ("t3",)),
    ]
    assert [fate.fate for fate in result.delta.fates] == ["merged", "merged", "kept"]


def test_two_wordings_of_one_trace_are_joined_by_code() -> None:
    result, rounds = done(Reduction(groups([said(0, 0, "t1")], [said(0, 1, "t1")]), "cluster"))
    assert rounds == []
    assert len(result.delta.operations) == 1


def test_different_words_of_different_traces_are_one_small_call_each_cluster() -> None:
    deltas = groups([said(0, 0, "t1"), said(1, 0, "t2"), said(2, 0, "t3")], [said(1, 1, "t4"), said(0, 2, "t5")])
    result, rounds = done(Reduction(deltas, "cluster"), whole)
    assert [[texts(part) for part in parts] for parts in rounds] == [
        [
            [RULES[0].wording(0), RULES[0].wording(2)],
            [RULES[1].wording(0), RULES[1].wording(1)],
        ]
    ]
    assert [op.sources for op in result.delta.operations] == [("t1", "t5"), ("t2", "t4"), ("t3",)]


def test_changes_of_one_bullet_meet_in_one_call_however_different_they_are() -> None:
    one = operation("UPDATE", insight(1), FIRST, sources=("t1",))
    other = operation("REMOVE", "", FIRST, sources=("t1",))
    deltas = groups([one, *lessons(3)], [other, *lessons(4)])
    _, rounds = done(Reduction(deltas, "cluster"))
    assert [[[op.kind for op in part] for part in parts] for parts in rounds] == [[["UPDATE", "REMOVE"]]]


def test_no_call_reads_more_than_a_dozen_and_the_results_of_a_large_cluster_meet_again() -> None:
    changes = [operation("UPDATE", RULES[n].wording(0), FIRST, sources=(f"t{n:02d}",)) for n in range(30)]
    result, rounds = done(Reduction(groups(changes[:15], changes[15:]), "cluster"), whole)
    assert [[len(part) for part in parts] for parts in rounds] == [[10, 10, 10], [3]]
    assert len(result.delta.operations) == len(result.between[0].operations) - 2 == 1
    assert result.delta.operations[0].sources == tuple(f"t{n:02d}" for n in range(30))


def test_a_merger_that_joins_nothing_is_not_asked_for_ever() -> None:
    changes = [operation("UPDATE", insight(n), FIRST, sources=(f"t{n:02d}",)) for n in range(40)]
    result, rounds = done(Reduction(groups(changes[:20], changes[20:]), "cluster"))
    assert len(rounds) == 1
    assert max(len(part) for parts in rounds for part in parts) <= MOST
    assert len(result.delta.operations) == 40


def test_clusters_know_two_levels_only() -> None:
    with pytest.raises(UsageError, match="merge=cluster has two levels, not 3"):
        Reduction([], "cluster", 3)


def test_an_embedding_model_decides_what_is_alike() -> None:
    def embed(said: Sequence[str]) -> np.ndarray:
        return np.array([[1.0, 0.0] for _ in said])

    deltas = groups(lessons(1, 2), lessons(3))
    assert [len(part) for _, part in Reduction(deltas, "cluster", embed=embed).parts] == [3]
    assert Reduction(deltas, "cluster").parts == ()


def test_what_is_alike_may_be_set_for_a_model() -> None:
    def embed(said: Sequence[str]) -> np.ndarray:
        return np.array([[np.cos(at / 2), np.sin(at / 2)] for at in range(len(said))])

    deltas = groups(lessons(1), lessons(2))
    near, far = (Reduction(deltas, "cluster", embed=embed, alike=alike).parts for alike in (0.8, 0.9))
    assert [len(part) for _, part in near] == [2]
    assert far == ()


# auto


def test_auto_is_the_papers_call_up_to_a_dozen_operations_and_clusters_beyond() -> None:
    few, many = (
        groups([said(0, 0, "t0")], [said(n, 0, f"t{n}") for n in range(1, count)])
        for count in (ONE_CALL_UP_TO, ONE_CALL_UP_TO + 1)
    )
    assert [len(part) for _, part in Reduction(few, "auto").parts] == [ONE_CALL_UP_TO]
    assert Reduction(many, "auto").parts == ()
    assert [len(part) for _, part in Reduction(many, "auto", 3).parts] == [ONE_CALL_UP_TO + 1]


# contradictions


FEE = [add("For ROE in Ghent add a fee of 5.", "t1"), add("For ROE in Ghent add a fee of 7.", "t2")]


@pytest.mark.parametrize("merge", FORMS)
def test_a_contradiction_is_told_and_both_stand_whatever_the_merger_made_of_them(merge: Any) -> None:
    result, _ = done(Reduction(groups([FEE[0], *lessons(1)], [FEE[1]]), merge), whole)
    (conflict,) = result.delta.conflicts
    assert conflict.texts == tuple(texts(FEE))
    assert conflict.sources == ("t1", "t2")
    assert set(texts(FEE)) <= set(texts(result.delta.operations))


def test_percent_beside_decimal_is_told() -> None:
    one, other = add("Write the ratio as percent.", "t1"), add("Write the ratio as decimal.", "t2")
    result, _ = done(Reduction(groups([one], [other]), "cluster"), whole)
    assert [conflict.reason for conflict in result.delta.conflicts] == ["opposed words: percent and decimal"]
    assert texts(result.delta.operations) == [one.text, other.text]


def test_a_contradiction_within_one_group_or_one_trace_is_told_without_a_call() -> None:
    again = FEE[1].model_copy(update={"sources": ("t1",)})
    for deltas in groups(FEE), groups([FEE[0]], [again]):
        result, rounds = done(Reduction(deltas, "cluster"))
        assert (rounds, len(result.delta.conflicts), len(result.delta.operations)) == ([], 1, 2)


def test_what_the_merger_calls_a_contradiction_is_told_and_kept_apart_too() -> None:
    one, other = add("Round to two decimals.", "t1"), add("Keep full precision in all sums.", "t2")

    def names_it(part: Part) -> Delta:
        return joined(part).model_copy(update={"conflicts": (Conflict(texts=tuple(texts(part)), reason="rounding"),)})

    result, _ = done(Reduction(groups([one], [other]), "paper"), names_it)
    assert [conflict.reason for conflict in result.delta.conflicts] == ["rounding"]
    assert texts(result.delta.operations) == [one.text, other.text]


def test_three_wordings_and_platitudes_are_no_contradiction() -> None:
    deltas = groups(*([said(rule, way, f"t{rule}{way}") for rule in range(20)] for way in range(3)))
    result, _ = done(Reduction(deltas, "cluster"), whole)
    assert result.delta.conflicts == ()
    assert len(result.delta.operations) == 20
