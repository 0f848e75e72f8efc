"""Headings that are meant, and the ids of what stands under them."""

from __future__ import annotations

import pytest
from builders import operation
from hypothesis import given
from hypothesis import strategies as st
from strategies import names

from combee_core.learners.ace.apply import apply
from combee_core.learners.ace.learner import SECTIONS
from combee_core.learners.ace.sections import find_section, others, slug
from combee_core.playbook import Bullet, Playbook, Section, fold
from combee_core.types import Update


def book(*headings: str) -> Playbook:
    return Playbook(sections=tuple(Section(name=name) for name in headings))


@pytest.mark.parametrize(
    "written",
    [
        "FORMULAS & CALCULATIONS",
        "formulas-&-calculations",
        "formulas_and_calculations",
        "Formulas and Calculations:",
        "## FORMULAS & CALCULATIONS",
        "[formulas & calculations]",
        "FORMULAS  &  CALCULATOINS",
        "formula and calculation",
        "ＦＯＲＭＵＬＡＳ & CALCULATIONS",
    ],
)
def test_a_close_spelling_is_the_known_section(written: str) -> None:
    assert find_section(SECTIONS, written) == "FORMULAS & CALCULATIONS"


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ("COMMON MISTAKES TO AVOID", "UNCOMMON MISTAKES TO AVOID"),
        ("SAFE ORDERS", "UNSAFE ORDERS"),
        ("RULES OF 2023", "RULES OF 2024"),
        ("STEP 1", "STEP 11"),
        ("PHASES", "PHASE1"),
        ("CREDIT RULES", "DEBIT RULES"),
        ("WHAT TO DO", "WHAT NOT TO DO"),
        ("TEXT RULES", "TEST RULES"),
        ("公式", "策略"),
        ("🧮", "🧪"),
        ("🧮", ""),
        ("FORMULAS", "general"),
        ("FORMULAS", ""),
    ],
)
def test_another_section_is_never_taken_for_a_known_one(known: str, written: str) -> None:
    assert find_section([known], written) is None
    after = apply(book(known), Update(operations=(operation("ADD", "x", section=written),)), 1).state
    assert [(s.name, len(s.bullets)) for s in after.sections] == [(known, 0), ("OTHERS", 1)]


def test_of_two_close_headings_neither_is_taken_and_an_exact_one_always_is() -> None:
    assert find_section(["SALES RULES", "SALE RULE"], "SALES RULE") is None
    assert find_section(["SALES RULES", "SALES RULE"], "SALES RULE") == "SALES RULE"
    assert find_section(["RULES", "RULES"], "rules") == "RULES"


def test_headings_in_other_scripts_and_of_signs_alone_are_found() -> None:
    headings = ["公式", "КРИТИЧЕСКИЕ ПРАВИЛА", "🧮", "🧪"]
    assert [find_section(headings, name) for name in ("公式", "Критические правила", "🧪")] == [
        "公式",
        "КРИТИЧЕСКИЕ ПРАВИЛА",
        "🧪",
    ]


def test_others_is_made_once_and_found_in_any_spelling() -> None:
    ops = tuple(operation("ADD", f"fact {n}", section=f"unheard of {n}") for n in range(3))
    after = apply(book("FORMULAS"), Update(operations=ops), 1).state
    again = apply(after, Update(operations=(operation("ADD", "more", section="???"),)), 2).state
    assert [(s.name, len(s.bullets)) for s in again.sections] == [("FORMULAS", 0), ("OTHERS", 4)]
    assert others(["A", "Others:"]) == "Others:"
    assert others(["A"]) == "OTHERS"


@given(st.lists(names.map(fold), max_size=4), names.map(fold))
def test_a_found_section_is_one_of_those_given_and_a_known_name_finds_itself(known: list[str], wanted: str) -> None:
    assert find_section(known, wanted) in {None, *known}
    assert find_section([*known, wanted], wanted) == wanted


# ids


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("STRATEGIES & INSIGHTS", "sai"),
        ("FORMULAS & CALCULATIONS", "calc"),
        ("CODE SNIPPETS & TEMPLATES", "code"),
        ("COMMON MISTAKES TO AVOID", "err"),
        ("PROBLEM-SOLVING HEURISTICS", "prob"),
        ("problem_solving_heuristics", "prob"),
        ("CONTEXT CLUES & INDICATORS", "ctx"),
        ("OTHERS", "misc"),
        ("Financial strategies and insights", "fin"),
        ("META STRATEGIES", "meta"),
        ("General", "gene"),
        ("APIs TO USE FOR SPECIFIC INFORMATION", "atufs"),
        ("公式", "misc"),
        ("🧮", "misc"),
    ],
)
def test_the_prefix_is_that_of_ace_or_made_from_the_name(name: str, expected: str) -> None:
    assert slug(name, []) == expected


def test_a_section_that_has_bullets_keeps_their_prefix() -> None:
    assert slug("STRATEGIES AND HARD RULES", ["shr-00001", "x-00002", "shr-00009"]) == "shr"
    assert slug("OTHERS", ["a-b-00001"]) == "a-b"
    assert slug("OTHERS", ["-00001", "plain"]) == "misc"


@given(names.map(fold))
def test_a_prefix_makes_a_valid_id(name: str) -> None:
    assert Bullet(id=f"{slug(name, [])}-00001", text="x").id.isascii()


def test_ids_of_new_bullets_follow_their_section() -> None:
    ops = [operation("ADD", f"fact {n}", section=name) for n, name in enumerate(SECTIONS)]
    after = apply(book(*SECTIONS), Update(operations=tuple(ops)), 1).state
    prefixes = ["sai", "calc", "code", "err", "prob", "ctx", "misc"]
    assert [b.id for b in after.bullets] == [f"{prefix}-{n:05d}" for n, prefix in enumerate(prefixes, start=1)]
