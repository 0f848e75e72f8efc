"""Recorded updates applied again: the same on the same base, and nothing lost on another."""

from __future__ import annotations

from typing import Any

from builders import ACE, EMPTY, add, change, vote
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import insight
from run_records import states

from combee_core.playbook import Playbook
from combee_core.ports import Applied
from combee_core.rebase import rebase
from combee_core.records import State
from combee_core.types import Operation, OperationKind, Update


def on(base: Any, made: list[State], start: Any = EMPTY, version: int = 2) -> Applied[Any]:
    own = [start, *(ACE.load(state.state) for state in made[:-1])]
    steps = zip((s.update for s in made), own, strict=False)
    return rebase(steps, base, learner=ACE, version=version)


def learn(base: Playbook, *ops: Operation, votes: tuple[Any, ...] = (), version: int = 1) -> Playbook:
    state: Playbook = ACE.apply(base, Update(operations=ops, votes=votes), version).state
    return state


def texts(state: Playbook) -> list[str]:
    return [bullet.text for bullet in state.bullets]


START = learn(EMPTY, *(add(insight(n), f"s{n}") for n in range(4)))


@st.composite
def batches(draw: st.DrawFn) -> list[Update]:
    """Updates of a run, each made for the state that the ones before it left."""
    state, made = START, []
    for number in range(draw(st.integers(0, 4))):
        bullets = list(state.bullets)
        ops = [add(insight(draw(st.integers(0, 12))), f"t{number}") for _ in range(draw(st.integers(0, 3)))]
        for bullet in draw(st.lists(st.sampled_from(bullets), max_size=2, unique=True) if bullets else st.just([])):
            kind = draw(st.sampled_from(["UPDATE", "REMOVE"]))
            remove = Operation(kind=OperationKind.REMOVE, bullet_ids=(bullet.id,), seen=(bullet.text,))
            ops.append(remove if kind == "REMOVE" else change(bullet, insight(draw(st.integers(20, 39))), f"t{number}"))
        voted = draw(st.lists(st.sampled_from(bullets), max_size=3, unique=True) if bullets else st.just([]))
        votes = tuple(vote(b.id, f"t{number}", draw(st.sampled_from(["helpful", "harmful"]))) for b in voted)
        made.append(Update(operations=tuple(ops), votes=votes))
        state = ACE.apply(state, made[-1], 2).state
    return made


@given(batches())
@settings(max_examples=60)
def test_on_the_base_it_was_made_for_a_run_comes_out_exactly_as_it_was(made: list[Update]) -> None:
    recorded = states(*made, base=START, version=2)
    again = on(START, recorded, START)
    expected = ACE.load(recorded[-1].state) if recorded else START
    assert again.state == expected


@given(batches(), st.lists(st.integers(40, 60), max_size=4), st.sets(st.integers(0, 3)))
@settings(max_examples=60)
def test_on_another_base_nothing_of_either_side_is_lost(
    made: list[Update], theirs: list[int], touched: set[int]
) -> None:
    bullets = list(START.bullets)
    moved = learn(
        START,
        *(add(insight(n), "other") for n in theirs),
        *(change(bullets[n], f"{insight(n)}, they say", "other") for n in touched),
    )
    again = on(moved, states(*made, base=START, version=2), START, version=3)
    ids = [b.id for b in again.state.bullets]
    assert len(ids) == len(set(ids))
    for number in theirs:
        assert insight(number) in texts(again.state)
    if made and not any(op.bullet_ids for op in made[-1].operations):
        assert {op.text for op in made[-1].operations} <= set(texts(again.state))
    for n in touched:
        assert f"{insight(n)}, they say" in texts(again.state)


def test_new_bullets_get_new_ids_where_theirs_are_taken() -> None:
    recorded = states(Update(operations=(add("ours", "t1"),)))
    theirs = learn(EMPTY, add("theirs", "u1"))
    (own_id,) = [b.id for b in ACE.load(recorded[-1].state).bullets]
    again = on(theirs, recorded)
    assert texts(again.state) == ["theirs", "ours"]
    assert [b.text for b in again.state.bullets if b.id == own_id] == ["theirs"]


def test_a_later_batch_finds_the_bullet_of_an_earlier_one_under_its_new_id() -> None:
    first = Update(operations=(add("ours", "t1"),))
    (bullet,) = ACE.load(states(first)[0].state).bullets
    second = Update(operations=(change(bullet, "ours, better", "t2"),), votes=(vote(bullet.id, "t3"),))
    again = on(learn(EMPTY, add("theirs", "u1")), states(first, second))
    assert texts(again.state) == ["theirs", "ours, better"]
    theirs, ours = again.state.bullets
    assert (theirs.helpful, ours.helpful) == (0, 1)
    assert again.set_aside == ()


def test_an_operation_on_a_bullet_that_others_changed_is_set_aside_with_a_reason() -> None:
    bullet = next(START.bullets)
    recorded = states(Update(operations=(change(bullet, "our wording", "t1"),)), base=START)
    again = on(learn(START, change(bullet, "their wording", "u1")), recorded, START)
    assert "their wording" in texts(again.state)
    assert "our wording" not in texts(again.state)
    (aside,) = again.set_aside
    assert bullet.id in aside.what
    assert "has changed" in aside.reason


def test_an_operation_on_a_bullet_that_is_gone_is_set_aside_with_a_reason() -> None:
    bullet = next(START.bullets)
    remove = Operation(kind=OperationKind.REMOVE, bullet_ids=(bullet.id,), seen=(bullet.text,))
    recorded = states(Update(operations=(change(bullet, "our wording", "t1"),)), base=START)
    again = on(learn(START, remove), recorded, START)
    (aside,) = again.set_aside
    assert "is gone" in aside.reason


def test_a_trace_that_both_runs_read_is_counted_once() -> None:
    bullet = next(START.bullets)
    recorded = states(Update(votes=(vote(bullet.id, "t1"), vote(bullet.id, "t2"))), base=START)
    again = on(learn(START, votes=(vote(bullet.id, "t1"),)), recorded, START)
    assert again.state.find(bullet.id).helpful == 2


def test_the_same_lesson_in_both_runs_is_one_bullet_with_both_sources() -> None:
    recorded = states(Update(operations=(add("ask for 20", "t1"),)))
    (bullet,) = on(learn(EMPTY, add("ask for 20", "u1")), recorded).state.bullets
    assert bullet.sources == ("t1", "u1")


def test_no_update_leaves_the_base_as_it_is() -> None:
    assert rebase([], START, learner=ACE, version=2).state is START
