"""UPDATE and MERGE applied: ids, counters, places and histories are kept by code."""

from __future__ import annotations

from applying import BOOK, FIRST, SECOND, act, after, the
from builders import bullet, operation, playbook, vote
from hypothesis import given
from strategies import playbooks

from combee_core.playbook import Bullet, Change, Playbook, Section

# UPDATE


def test_an_update_keeps_id_counters_and_place_and_remembers_the_old_text() -> None:
    book = playbook(bullet(text="Round first.", helpful=3, harmful=4, sources=("t1",), created=1, updated=1), SECOND)
    changed = after(
        book,
        operation("UPDATE", "Never\nround first.", next(book.bullets), sources=("t5",), origin="curate-g01"),
        version=6,
    )
    one, _ = changed.bullets
    assert one == Bullet(
        id="calc-00001",
        text="Never ⏎ round first.",
        helpful=3,
        harmful=4,
        sources=("t1", "t5"),
        created=1,
        updated=6,
        history=(Change(version=6, kind="UPDATE", origin="curate-g01", sources=("t5",), before="Round first."),),
    )


def test_an_update_to_the_same_text_is_evidence() -> None:
    changed = after(BOOK, operation("UPDATE", FIRST.text, FIRST, sources=("t1",)), version=2)
    assert [(c.kind, c.before) for c in the(changed, FIRST.id).history] == [("EVIDENCE", "")]
    assert after(changed, operation("UPDATE", FIRST.text, FIRST, sources=("t1",)), version=3) == changed


# MERGE


def test_merged_counters_are_added_by_code() -> None:
    book = playbook(bullet("calc-00001", "a", helpful=16, harmful=5), bullet("calc-00002", "b", helpful=3, harmful=1))
    changed = after(book, operation("MERGE", "a and b, helpful=1 harmful=0", *book.bullets))
    (one,) = changed.bullets
    assert (one.id, one.helpful, one.harmful) == ("calc-00001", 19, 6)


def test_a_merge_joins_sources_votes_and_histories_under_the_first_id() -> None:
    book = playbook(
        bullet("calc-00001", "a", sources=("t1",), history=(Change(version=1, kind="ADD"),), created=1),
        bullet("calc-00002", "b"),
        bullet("calc-00003", "c", sources=("t2",), history=(Change(version=2, kind="ADD"),), created=2),
    )
    a, b, c = book.bullets
    changed = act(book, operation("MERGE", "c, or a", c, a, sources=("t3",)), version=4)
    assert changed.ids == {0: "calc-00003"}
    assert [x.id for x in changed.state.bullets] == ["calc-00002", "calc-00003"]
    one = the(changed.state, "calc-00003")
    assert (one.text, one.sources, one.created, one.updated) == ("c, or a", ("t1", "t2", "t3"), 2, 4)
    assert [(h.version, h.kind, h.before) for h in one.history] == [(2, "ADD", ""), (1, "ADD", ""), (4, "MERGE", "c")]
    assert b in changed.state.bullets


def test_a_trace_that_judged_both_merged_bullets_counts_once_and_harmful_outweighs() -> None:
    votes = (
        vote("calc-00001", "t1", "helpful"),
        vote("calc-00002", "t1", "helpful"),
        vote("calc-00001", "t2", "helpful"),
        vote("calc-00002", "t2", "harmful"),
        vote("calc-00002", "t3", "helpful"),
    )
    book = playbook(bullet("calc-00001", "a", helpful=10), bullet("calc-00002", "b", harmful=1))
    voted = after(book, votes=votes)
    assert [(b.helpful, b.harmful) for b in voted.bullets] == [(12, 0), (2, 2)]
    (one,) = after(voted, operation("MERGE", "ab", *voted.bullets)).bullets
    assert (one.helpful, one.harmful) == (12, 2)
    assert [(c.trace_id, c.tag) for c in one.counted] == [("t1", "helpful"), ("t2", "harmful"), ("t3", "helpful")]
    (again,) = after(Playbook(sections=(Section(name="A", bullets=(one,)),)), votes=votes[:1]).bullets
    assert again == one


@given(playbooks(least=3))
def test_merging_all_bullets_at_once_or_one_by_one_gives_the_same_counters(book: Playbook) -> None:
    first, second, *others = book.bullets
    at_once = the(after(book, operation("MERGE", "m", first, second, *others)), first.id)
    step = after(book, operation("MERGE", "m", first, second))
    for other in others:
        step = after(step, operation("MERGE", "m", the(step, first.id), other))
    found = the(step, first.id)
    assert (found.helpful, found.harmful, found.counted) == (at_once.helpful, at_once.harmful, at_once.counted)
