"""Operations applied to a playbook: only they change it, and one that cannot be applied is set aside."""

from __future__ import annotations

import pytest
from applying import BOOK, FIRST, SECOND, THIRD, act, after, the
from builders import bullet, numbered, operation, playbook
from hypothesis import given
from hypothesis import strategies as st
from strategies import playbooks, texts

from combee_core.playbook import Playbook, fold
from combee_core.types import Operation, OperationKind

# nothing else changes


@given(playbooks())
def test_an_empty_update_changes_nothing_at_all(book: Playbook) -> None:
    applied = act(book)
    assert applied.state == book
    assert applied.state.digest == book.digest
    assert (applied.set_aside, dict(applied.ids)) == ((), {})


@st.composite
def changes(draw: st.DrawFn, book: Playbook) -> list[Operation]:
    bullets = list(book.bullets)
    made = []
    for kind in draw(st.lists(st.sampled_from(list(OperationKind)), max_size=5)):
        most = {OperationKind.ADD: 0, OperationKind.MERGE: min(3, len(bullets))}.get(kind, 1)
        named = draw(st.permutations(bullets))[:most]
        text = "" if kind is OperationKind.REMOVE else draw(texts)
        made.append(operation(kind, text, *named, section=draw(st.sampled_from(["A", "OTHERS"])), sources=("t9",)))
    return made


@given(st.data(), playbooks(least=2))
def test_what_no_operation_names_is_identical_afterwards_and_each_operation_is_applied_or_listed(
    data: st.DataObject, book: Playbook
) -> None:
    ops = data.draw(changes(book))
    applied = act(book, *ops, version=5)
    named = {bullet_id for op in ops for bullet_id in op.bullet_ids}
    said = {fold(op.text) for op in ops}
    for one in book.bullets:
        if one.id not in named and not any(one.text[1:].rstrip(".") in text for text in said):
            assert applied.state.find(one.id) == one
    removals = sum(op.kind is OperationKind.REMOVE for op in ops)
    assert len(applied.ids) <= len(ops) <= len(applied.ids) + len(applied.set_aside) + removals
    headings = [section.name for section in applied.state.sections]
    assert headings[: len(book.sections)] == [section.name for section in book.sections]
    assert headings[len(book.sections) :] in ([], ["OTHERS"])
    assert applied.state.next_id >= book.next_id
    assert all(fold(b.text) == b.text for b in applied.state.bullets)


def test_a_short_answer_after_a_long_playbook_leaves_the_long_playbook() -> None:
    book = numbered(*(f"fact {n}" for n in range(120)))
    changed = after(book, *(operation("ADD", f"new {n}", section="FORMULAS & CALCULATIONS") for n in range(9)))
    assert list(changed.bullets)[:120] == list(book.bullets)
    assert len(list(changed.bullets)) == 129


# set aside


def test_an_operation_on_a_bullet_that_is_gone_or_changed_is_set_aside_with_a_reason() -> None:
    base = playbook(bullet(text="Now it says this."), SECOND)
    applied = act(
        base,
        operation("UPDATE", "x", FIRST, origin="curate-g01"),
        operation("REMOVE", "", THIRD, origin="curate-g02"),
        operation("MERGE", "x", SECOND, THIRD, origin="merge"),
        operation("ADD", "Use percent.", section=base.sections[0].name),
    )
    assert [(note.what, note.reason, note.where) for note in applied.set_aside] == [
        ("UPDATE calc-00001: x", "the bullet calc-00001 has changed since this was proposed", "curate-g01"),
        ("REMOVE calc-00003: ", "the bullet calc-00003 is gone since this was proposed", "curate-g02"),
        ("MERGE calc-00002 calc-00003: x", "the bullet calc-00003 is gone since this was proposed", "merge"),
    ]
    assert applied.ids == {3: "calc-00003"}
    assert list(applied.state.bullets)[:2] == list(base.bullets)


def test_of_two_operations_on_one_bullet_the_first_is_applied() -> None:
    applied = act(
        BOOK, operation("UPDATE", "x", FIRST), operation("UPDATE", "y", FIRST), operation("REMOVE", "", FIRST)
    )
    assert the(applied.state, FIRST.id).text == "x"
    assert [note.reason for note in applied.set_aside] == [
        "the bullet calc-00001 has changed since this was proposed"
    ] * 2


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (operation("ADD", " \n"), "it has no text"),
        (operation("UPDATE", "", FIRST), "it has no text"),
        (operation("UPDATE", "x"), "it must name its bullets"),
        (operation("UPDATE", "x", FIRST, SECOND), "it must name its bullets"),
        (operation("MERGE", "x", FIRST), "it must name its bullets"),
        (operation("MERGE", "x", FIRST, FIRST), "it must name its bullets"),
        (operation("REMOVE"), "it must name its bullets"),
        (operation("UPDATE", "x", FIRST).model_copy(update={"seen": ()}), "it must name its bullets"),
        (operation("MERGE", "x", FIRST, SECOND).model_copy(update={"seen": ("Round first.",)}), "it must name"),
    ],
)
def test_an_operation_that_makes_no_sense_is_set_aside_and_the_others_are_applied(op: Operation, reason: str) -> None:
    applied = act(BOOK, op, operation("REMOVE", "", THIRD))
    assert [note.reason.startswith(reason) for note in applied.set_aside] == [True]
    assert list(applied.state.bullets) == [FIRST, SECOND]
