"""The text form: written, read, and never misread."""

from __future__ import annotations

import pytest
from builders import bullet, numbered, playbook
from hypothesis import assume, given
from real_data import PLAYBOOKS, needs
from strategies import names, playbooks, texts

from combee_core.errors import PlaybookError
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.playbook_text import parse, render, render_bullet


def content(book: Playbook) -> list[tuple[str, list[tuple[str, str, int, int]]]]:
    return [(s.name, [(b.id, b.text, b.helpful, b.harmful) for b in s.bullets]) for s in book.sections]


def only(text: str) -> Bullet:
    (found,) = parse(text).bullets
    return found


# written


def test_a_bullet_is_written_in_the_form_of_ace() -> None:
    one = bullet("calc-00071", "For ROE answer in percent: 20, not 0.2.", helpful=16, harmful=5)
    assert render_bullet(one) == "[calc-00071] helpful=16 harmful=5 :: For ROE answer in percent: 20, not 0.2."
    assert render_bullet(one, counters=False) == "[calc-00071] For ROE answer in percent: 20, not 0.2."


def test_sections_are_headings_with_a_blank_line_between() -> None:
    book = playbook(bullet("a-1", "x"), bullet("a-2", "y"), section="A", B=(), C=(bullet("c-3", "z"),))
    assert render(book, counters=False) == "## A\n[a-1] x\n[a-2] y\n\n## B\n\n## C\n[c-3] z\n"
    assert render(Playbook()) == ""


# there and back


@given(playbooks())
def test_any_playbook_reads_back_with_its_sections_ids_texts_and_counters(book: Playbook) -> None:
    assert content(parse(render(book))) == content(book)


@given(playbooks(least=1))
def test_without_counters_sections_ids_and_texts_read_back(book: Playbook) -> None:
    assume(not any(b.text.lower().startswith(("helpful", "harmful")) for b in book.bullets))
    read = parse(render(book, counters=False))
    assert content(read) == [(name, [(i, text, 0, 0) for i, text, *_ in its]) for name, its in content(book)]


@given(texts, names)
def test_a_hostile_text_is_one_bullet_under_one_heading(text: str, name: str) -> None:
    book = Playbook(sections=(Section(name=name, bullets=(bullet(text=text, helpful=3),)),))
    read = parse(render(book))
    assert [len(section.bullets) for section in read.sections] == [1]
    assert next(read.bullets).helpful == 3


@pytest.mark.parametrize(
    "text",
    ["", "#", "# A", "## OTHERS", "[x] helpful=1 harmful=2 :: y", ":: x", "- [a] b", "helpful=9 harmful=9 :: z", "⏎"],
)
@pytest.mark.parametrize("name", ["# A", "#", "## #", "A ##", "[x] helpful=1 harmful=1 :: y", "a :: b", "OTHERS"])
def test_texts_and_headings_that_look_like_the_form_itself_read_back(text: str, name: str) -> None:
    book = Playbook(sections=(Section(name=name, bullets=(bullet(text=text, helpful=7, harmful=1),)),))
    assert content(parse(render(book))) == content(book)


def test_sections_of_one_name_stay_apart() -> None:
    twice = Playbook(sections=tuple(Section(name="A", bullets=(bullet(f"a-{n}"),)) for n in (1, 2)))
    assert content(parse(render(twice))) == content(twice)


def test_a_text_that_lost_its_trailing_space_to_an_editor_reads_the_same() -> None:
    book = playbook(bullet(text=""))
    stripped = "\n".join(line.rstrip() for line in render(book).split("\n"))
    assert content(parse(stripped)) == content(book)


@needs(PLAYBOOKS)
@pytest.mark.parametrize(("name", "bullets"), [("ace_appworld_offline.txt", 318), ("ace_appworld_initial.txt", 8)])
def test_the_real_playbooks_of_ace_are_read_whole_and_written_as_they_were(name: str, bullets: int) -> None:
    text = (PLAYBOOKS / name).read_text(encoding="utf-8")
    book = parse(text)
    assert len(list(book.bullets)) == text.count("\n[") == bullets
    assert [s.name for s in book.sections] == [line[3:] for line in text.split("\n") if line.startswith("## ")]
    assert all(b.text for b in book.bullets)
    assert content(parse(render(book))) == content(book)

    def lines(of: str) -> list[str]:
        return [line.strip() for line in of.split("\n") if line.strip()]

    assert lines(render(book, counters=False)) == lines(text)


# read: edited lines are understood or refused, never lost


@pytest.mark.parametrize(
    "line",
    [
        "[calc-1] helpful=16 harmful=5 :: Round last.",
        "- [calc-1] helpful=16 harmful=5 :: Round last.",
        "  * [calc-1]  helpful = 16  harmful = 5  ::  Round last.  ",
        "• [calc-1] helpful=16, harmful=5 :: Round last.",
        "[calc-1] helpful=16; harmful=5 :: Round last.",
        "[calc-1] Helpful=16 HARMFUL=5 :: Round last.",
        "[calc-1]helpful=16 harmful=5::Round last.",
        "[calc-1] helpful=016 harmful=5 ::\tRound last.",
        "\ufeff[calc-1] helpful=16 harmful=5 :: Round last.\r\n",
    ],
)
def test_a_slightly_edited_line_is_still_the_bullet(line: str) -> None:
    found = only(line)
    assert (found.id, found.helpful, found.harmful, found.text) == ("calc-1", 16, 5, "Round last.")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[calc-1] helpful=-1 harmful=5 :: x", r"line 3: the counters of \[calc-1\] must not be negative"),
        ("[calc-1] helpful=1 harmful=-0 :: x", "line 3: the counters"),
        ("[calc-1] helpful=1 :: x", "line 3: neither"),
        ("[calc-1] harmful=5 helpful=16 :: x", "line 3: neither"),
        ("[calc-1] helpful=1.5 harmful=5 :: x", "line 3: neither"),
        ("[calc-1] helpful=16 harmful=5 x", "line 3: neither"),
        ("[calc-1] helpful=many harmful=5 :: x", "line 3: neither"),
        ("[calc-1] helpful=1 harmful=" + "9" * 5000 + " :: x", "line 3: neither"),
        ("calc-1 helpful=16 harmful=5 :: x", "line 3: neither"),
        ("[calc 1] helpful=16 harmful=5 :: x", "line 3: neither"),
        ("[] helpful=16 harmful=5 :: x", "line 3: neither"),
        ("[calc-1] a line without counters", r"line 3: neither .*as in line 2"),
        ("and a second line of the text", "line 3: neither"),
        ("##A", "line 3: neither"),
        ("## ", "line 3: a heading without a name"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_number(line: str, reason: str) -> None:
    with pytest.raises(PlaybookError, match=reason):
        parse(f"## A\n[ok-1] helpful=1 harmful=0 :: fine\n{line}\n[ok-2] helpful=1 harmful=0 :: fine")


@pytest.mark.parametrize(
    "text", ["helpful=16 :: x", "harmful=5, helpful=16 :: x", "Helpful: 3 x", "helpful=+1 harmful=2"]
)
def test_broken_counters_are_not_taken_for_the_text_of_a_file_without_counters(text: str) -> None:
    with pytest.raises(PlaybookError, match="line 1: counters that cannot be read"):
        parse(f"[calc-1] {text}")


def test_a_text_about_helpful_is_a_text() -> None:
    book = parse("## A\n[shr-00001] helpful=true is the flag that search wants\n[shr-00002] Helpful: say please.")
    assert [b.text for b in book.bullets] == ["helpful=true is the flag that search wants", "Helpful: say please."]
    assert [b.helpful for b in book.bullets] == [0, 0]


def test_a_link_is_not_taken_for_a_bullet() -> None:
    with pytest.raises(PlaybookError, match="line 2"):
        parse("[a-1] see\n[the manual](https://example.org)")
    with pytest.raises(PlaybookError, match="line 1"):
        parse("[manual](https://example.org)")


def test_an_id_that_stands_twice_is_refused_with_both_lines() -> None:
    with pytest.raises(PlaybookError, match=r"line 4: id \[calc-00071\] already stands at line 2"):
        parse("## A\n[calc-00071] x\n## B\n[calc-00071] y")


def test_lines_end_as_on_any_system_and_other_breaks_stay_in_their_bullet() -> None:
    assert [b.text for b in parse("[a-1] x\r[a-2] y\r\n\r\n[a-3] z\n").bullets] == ["x", "y", "z"]
    assert only("[a-1] x\u2028[a-2] y").text == "x ⏎ [a-2] y"


def test_bullets_before_any_heading_go_under_others() -> None:
    assert [(s.name, len(s.bullets)) for s in parse("[a-1] x\n# Real heading\n[a-2] y").sections] == [
        ("OTHERS", 1),
        ("Real heading", 1),
    ]


def test_nothing_is_read_from_nothing() -> None:
    for blank in "", "\n", " \n\t\n", "\ufeff":
        assert parse(blank) == Playbook()


def test_what_is_read_knows_where_it_comes_from_and_which_id_is_next() -> None:
    book = parse("[calc-00071] helpful=1 harmful=0 :: x")
    (found,) = book.bullets
    assert (found.origin, found.created, found.updated) == ("import", 0, 0)
    assert book.next_id == 72


def test_reading_and_writing_again_settles_at_once() -> None:
    text = "# A\n -  [x-1]  Helpful=1, harmful=2::y  \n"
    once = render(parse(text))
    assert once == "## A\n[x-1] helpful=1 harmful=2 :: y\n"
    assert render(parse(once)) == once
    assert render(numbered()) == "## FORMULAS & CALCULATIONS\n"
