"""Votes applied: a trace counts once in a bullet's life."""

from __future__ import annotations

from applying import BOOK, FIRST, SECOND, THIRD, act, after, the
from builders import operation, vote

from combee_core.playbook import Counted, Playbook


def test_a_trace_counts_once_in_a_bullets_life() -> None:
    votes = (vote(FIRST.id, "t1"), vote(FIRST.id, "t1", "harmful"), vote(FIRST.id, "t2"))
    once = after(BOOK, votes=votes)
    assert (the(once, FIRST.id).helpful, the(once, FIRST.id).harmful) == (1, 1)
    assert the(once, FIRST.id).counted == (
        Counted(trace_id="t1", tag="harmful"),
        Counted(trace_id="t2", tag="helpful"),
    )
    assert after(once, votes=votes) == once
    stored = Playbook.model_validate_json(once.model_dump_json())
    assert after(stored, votes=(vote(FIRST.id, "t1", "helpful"),)) == once


def test_votes_change_counters_and_nothing_else() -> None:
    voted = after(BOOK, votes=(vote(SECOND.id, "t1"),), version=9)
    assert the(voted, SECOND.id) == SECOND.model_copy(
        update={"helpful": 1, "counted": (Counted(trace_id="t1", tag="helpful"),)}
    )
    assert [b for b in voted.bullets if b.id != SECOND.id] == [FIRST, THIRD]


def test_a_vote_on_a_bullet_that_is_not_there_is_listed_each() -> None:
    applied = act(BOOK, votes=(vote("calc-00009", "t1"), vote("calc-00009", "t2", "harmful"), vote(FIRST.id, "t1")))
    assert [(note.what, note.reason, note.where) for note in applied.set_aside] == [
        ("tag helpful on calc-00009", "no such bullet", "reflect-t1"),
        ("tag harmful on calc-00009", "no such bullet", "reflect-t2"),
    ]
    assert the(applied.state, FIRST.id).helpful == 1


def test_votes_count_before_operations_so_that_they_reach_the_bullet_they_are_about() -> None:
    changed = act(BOOK, operation("REMOVE", "", FIRST), votes=(vote(FIRST.id),))
    assert changed.set_aside == ()
    merged = after(BOOK, operation("MERGE", "x", SECOND, FIRST), votes=(vote(FIRST.id),))
    assert the(merged, SECOND.id).helpful == 1
