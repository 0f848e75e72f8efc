"""What differs between two playbooks."""

from __future__ import annotations

from builders import bullet, numbered, playbook
from hypothesis import given
from strategies import playbooks

from combee_core.diff import Changed, Diff, diff
from combee_core.playbook import Playbook


def test_each_bullet_stands_under_what_happened_to_it() -> None:
    kept, gone, old, voted = (bullet(f"calc-0000{n}", f"text {n}") for n in range(1, 5))
    new, rewritten = bullet("calc-00005", "text 5"), bullet("calc-00003", "better", helpful=1)
    counted = bullet("calc-00004", "text 4", helpful=1)
    found = diff(playbook(kept, gone, old, voted), playbook(kept, rewritten, counted, new))
    assert found == Diff(
        added=(new,),
        rewritten=(Changed(before=old, after=rewritten),),
        counted=(Changed(before=voted, after=counted),),
        removed=(gone,),
    )
    assert not found.is_empty


def test_more_evidence_is_a_change_and_its_order_is_not() -> None:
    one, more = bullet(sources=("t1",)), bullet(sources=("t1", "t2"))
    assert diff(playbook(one), playbook(more)).counted == (Changed(before=one, after=more),)
    assert diff(playbook(more), playbook(bullet(sources=("t2", "t1")))).is_empty


def test_versions_and_history_are_no_difference() -> None:
    assert diff(numbered("a"), playbook(bullet(text="a", created=3, updated=4))).is_empty


def test_new_and_lost_headings_and_moved_bullets_are_listed() -> None:
    a, b = bullet("calc-00001", "a"), bullet("calc-00002", "b")
    found = diff(playbook(a, b, section="A"), playbook(a, section="A", B=(b,)))
    assert found == Diff(moved=(b,), sections_added=("B",))
    back = diff(playbook(a, section="A", B=()), playbook(a, section="C"))
    assert back == Diff(moved=(a,), sections_added=("C",), sections_removed=("A", "B"))


@given(playbooks())
def test_a_playbook_does_not_differ_from_itself(book: Playbook) -> None:
    assert diff(book, book).is_empty


@given(playbooks(), playbooks())
def test_equal_digests_mean_no_difference_and_a_difference_means_another_digest(one: Playbook, other: Playbook) -> None:
    assert diff(one, other).is_empty or one.digest != other.digest
    there, back = diff(one, other), diff(other, one)
    assert there.added == back.removed
    assert there.removed == back.added
    assert there.sections_added == back.sections_removed
    assert len(there.rewritten) == len(back.rewritten)
