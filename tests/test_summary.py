"""The summary in Markdown: nothing that a model or a trace says can break it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from builders import ACE, EMPTY, add, change, vote
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from run_records import KEY, learned, states

from combee_core.diff import diff
from combee_core.records import Accounting, Amounts, RunResult, TraceFate
from combee_core.summary import accounting, cell, spent, table, unlearned, what_changed
from combee_core.tally import MOST_SHOWN, Tally, tally
from combee_core.types import Conflict, Operation, OperationFate, OperationKind, SetAside, Survival, Update

HOSTILE = [
    "a | b",
    "a \\| b",
    "a \\\\| b",
    "trailing \\",
    "`code | span`",
    "``",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](http://evil.example)",
    "![x](http://evil.example/pixel.png)",
    "http://evil.example/?q=secret",
    "line one\nline two",
    "line one\r\nline two\r three",
    "\u2028| paragraph \x85 separators",
    "# heading",
    "| --- | --- |",
    "**bold** __bold__ ~~gone~~",
    "&lt; &amp; &#124;",
    "$x$",
    "- [ ] box",
    "",
]


def result(**changes: Any) -> RunResult:
    fields = {"playbook": "p", "version": 2, "digest": "0123456789abcdef", "flow_run_id": "flow-1", "run": KEY}
    return RunResult(**{**fields, **changes})


def rendered(markdown: str) -> list[list[str]]:
    """The cells of every table row, as a Markdown parser reads them, and proof that there is nothing active."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
    rows: list[list[str]] = []
    for token in parser.parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        assert token.type not in ("html_block", "fence", "code_block")
        for child in token.children or []:
            assert child.type in ("text", "softbreak", "text_special", "strong_open", "strong_close", "code_inline"), (
                child
            )
        if token.type == "inline" and rows and token.level == 4:
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


def items(markdown: str) -> list[str]:
    """The list items as a Markdown parser reads them, each on one line; the same proof as for tables."""
    rendered(markdown)
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown)
    found = []
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open" and before.level >= 2:
            found.append(flat("".join(child.content for child in token.children or [])))
    return found


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_is_and_does_nothing(text: str) -> None:
    rows = rendered(table(("one", "two", "three"), [("before", text, "after"), ("next", "row", "here")]))
    assert [[flat(c) for c in row] for row in rows] == [
        ["one", "two", "three"],
        ["before", flat(text), "after"],
        ["next", "row", "here"],
    ]


TEXTS = st.text(st.sampled_from("ab |\\`*_[]()<>&#~!$:/-\n\r\t\u2028x1"), max_size=25) | st.text(max_size=25)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
@settings(max_examples=300)
def test_no_text_breaks_a_table(texts: list[tuple[str, str]]) -> None:
    rows = rendered(table(("a", "b", "c"), [(*pair, "end") for pair in texts]))
    assert len(rows) == len(texts) + 1
    assert all(len(row) == 3 and flat(row[2]) == "end" for row in rows[1:])


@given(TEXTS)
def test_a_cell_is_one_line_without_pipe_or_tag(text: str) -> None:
    made = cell(text)
    assert len(made.splitlines()) <= 1
    assert not {"|", "<", ">", "\0"} & set(made)


def test_an_address_is_not_made_a_link() -> None:
    """Readers of Markdown make links of bare addresses too."""
    assert "http://" not in cell("http://evil.example") + cell("see http://evil.example")


def test_plain_words_stay_readable() -> None:
    assert cell("For ROE answer 20, not 0.2 (as a percentage)!") == "For ROE answer 20, not 0.2 (as a percentage)!"


# the summary


def changed(*updates: Update) -> tuple[Any, Tally]:
    recorded = states(*updates)
    return diff(EMPTY, ACE.load(recorded[-1].state)), tally(recorded)


NOTHING = Tally()
UNCHANGED = diff(EMPTY, EMPTY)


def test_every_new_bullet_is_listed_with_its_traces() -> None:
    text = what_changed(result(), *changed(Update(operations=(add("ask for 20", "t1", "t2"),))))
    assert "# p: version 2" in text
    assert "## New bullets (1)" in text
    assert items(text)[:2] == ["misc-00001 ask for 20", "from t1, t2"]


def test_rewritten_counted_and_removed_bullets_are_listed() -> None:
    start = ACE.apply(EMPTY, Update(operations=(add("one", "t1"), add("two", "t2"), add("three", "t3"))), 1).state
    one, two, three = start.bullets
    removal = Operation(kind=OperationKind.REMOVE, bullet_ids=(three.id,), seen=(three.text,))
    after = ACE.apply(
        start, Update(operations=(change(one, "one, better", "t4"), removal), votes=(vote(two.id, "t5"),)), 2
    ).state
    text = what_changed(result(), diff(start, after), NOTHING)
    assert items(text) == [f"{one.id} one, better", "before: one", "from t1, t4", f"{three.id} three"]
    assert [two.id, "0 → 1", "0 → 0", "1 → 1"] in rendered(text)


def test_copies_that_met_in_one_group_are_told_and_only_where_some_did() -> None:
    told = what_changed(result(), UNCHANGED, Tally(copies_met=0.15))
    assert "15% of a batch's reflections lay twice in one group." in told
    assert "lay twice" not in what_changed(result(), UNCHANGED, NOTHING)


def test_groups_that_were_read_in_parts_are_told_and_others_are_not() -> None:
    told = "10 groups were read in 12 calls: some were too large, cut or refused."
    assert told in what_changed(result(groups=(6, 4), calls=12), UNCHANGED, NOTHING)
    assert "were read in" not in what_changed(result(groups=(6, 4), calls=10), UNCHANGED, NOTHING)


def figures(estimated: bool, known: int = 0, **left: int) -> tuple[Survival, ...]:
    return tuple(
        Survival(level=name, before=40, after=count, known=known, estimated=estimated) for name, count in left.items()
    )


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        (figures(True, curate=31, merge=29), "40 distinct, 31 left the curators, 29 the merge (estimated)."),
        (figures(False, curate=31, merge=29), "40 distinct, 31 left the curators, 29 the merge."),
        (figures(False, curate=31), "40 distinct, 31 left the curators."),
        (figures(False, known=2, curate=31), "40 distinct, 31 left the curators; 2 more were in the playbook before."),
        (figures(False, known=1, curate=31), "40 distinct, 31 left the curators; 1 more was in the playbook before."),
    ],
)
def test_what_became_of_the_insights_is_told_as_the_result_has_it(levels: tuple[Survival, ...], told: str) -> None:
    assert f"Insights: {told}" in what_changed(result(survival=levels), UNCHANGED, NOTHING)


def test_without_figures_nothing_is_said_about_insights() -> None:
    assert "Insights" not in what_changed(result(), UNCHANGED, NOTHING)


@pytest.mark.parametrize("text", ["The fee is 5.", *HOSTILE])
def test_contradictions_are_listed_with_both_texts_and_their_traces(text: str) -> None:
    conflicts = (Conflict(texts=(text, "The fee is 7."), sources=("t1", text), reason=f"they differ: {text}"),)
    made = what_changed(result(), *changed(Update(conflicts=conflicts)))
    assert "## Contradictions (1)" in made
    reason, one, other, sources = items(made)
    assert reason == flat(f"they differ: {text}")
    assert one.replace("“ ", "“").replace(" ”", "”") == f"“{flat(text)}”"
    assert other == "“The fee is 7.”"
    assert sources == flat(f"from t1, {text}")


def test_a_run_that_changed_nothing_says_so() -> None:
    text = what_changed(result(note="single group: fewer than 4 reflections"), UNCHANGED, NOTHING)
    assert "Nothing changed in the playbook." in text
    assert "single group: fewer than 4 reflections" in text


def test_before_the_first_version_there_is_none() -> None:
    assert "# p: no version yet" in what_changed(result(version=0), UNCHANGED, NOTHING)


@pytest.mark.parametrize("simulated", [True, False])
def test_a_simulated_run_says_so(simulated: bool) -> None:
    assert ("Simulated" in what_changed(result(simulated=simulated), UNCHANGED, NOTHING)) == simulated


def test_the_merge_is_accounted_for_operation_by_operation() -> None:
    fates = [
        OperationFate(text="kept", origin="curate-g01", fate="kept"),
        OperationFate(text="merged", origin="curate-g01", fate="merged", because="into: kept"),
        OperationFate(text="dropped | one", origin="curate-g02", fate="dropped", because="too general"),
        OperationFate(text="dropped two", origin="curate-g02", fate="dropped", because="contradicts r1"),
    ]
    text = what_changed(result(), *changed(Update(fates=tuple(fates))))
    assert "4 operations entered: 1 kept, 1 merged, 2 dropped (50% survived)" in text
    assert items(text)[:2] == ["“dropped | one”", "from curate-g02: too general"]


def test_what_was_set_aside_is_listed_with_the_reason() -> None:
    asides = (SetAside(what="UPDATE calc-1", reason="no such bullet", where="curate-g01"),)
    text = what_changed(result(set_aside=asides), UNCHANGED, NOTHING)
    assert items(text) == ["“UPDATE calc-1”", "because no such bullet (curate-g01)"]


def test_what_is_counted_and_not_named_is_told_as_a_number() -> None:
    asides = tuple(SetAside(what=f"operation {n}", reason="gone") for n in range(MOST_SHOWN + 3))
    text = what_changed(result(set_aside=asides, more_set_aside=4_000), UNCHANGED, NOTHING)
    assert f"## Set aside ({4_000 + len(asides):,})" in text
    assert "… and 4,003 more." in text
    conflicts = (Conflict(texts=("a", "b"), reason="they differ"),) * MOST_SHOWN
    dropped = (OperationFate(text="x", origin="curate-g01", fate="dropped"),) * MOST_SHOWN
    made = Tally(conflicts=conflicts, more_conflicts=40, merged={"dropped": 90, "kept": 10}, dropped=dropped)
    text = what_changed(result(), UNCHANGED, made)
    assert "## Contradictions (100)" in text
    assert "… and 40 more." in text
    assert "100 operations entered: 10 kept, 0 merged, 90 dropped (10% survived)" in text
    assert "## Dropped by the merge (90)" in text
    assert "… and 30 more." in text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_inside_its_list_item(text: str) -> None:
    fates = (OperationFate(text=text, origin="curate-g01", fate="dropped", because=text),)
    asides = (SetAside(what=text, reason=text, where="merge"),)
    changes = changed(Update(operations=(add(text or "x", "t1"),), fates=fates))
    shown = items(what_changed(result(set_aside=asides), *changes))
    assert len(shown) == 6
    assert shown[2].replace("“ ", "“").replace(" ”", "”") == f"“{flat(text)}”"
    assert shown[5] == flat(f"because {text} (merge)")


def test_long_lists_are_cut_and_say_by_how_much() -> None:
    ops = tuple(add(f"unrelated lesson number {n} about {n * n}", "t1") for n in range(75))
    text = what_changed(result(), *changed(Update(operations=ops)))
    assert "## New bullets (75)" in text
    assert "… and 15 more." in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_bullets_traces_and_reasons_leave_the_summary_whole(text: str) -> None:
    difference, recorded = changed(Update(operations=(add(f"x {text}", f"trace {text}"),)))
    asides = (SetAside(what=text, reason=text, where=text),)
    shown = items(what_changed(result(set_aside=asides, note=text), difference, recorded))
    assert [line.split()[0] for line in shown] == ["misc-00001", "from", shown[2].split()[0], "because"]


# accounting and cost


def test_the_accounting_has_every_fate_once_and_adds_up() -> None:
    made = result(accounting=Accounting.model_validate({"in": 5, "learned": 3, "nothing": 1, "failed": 1}))
    rows = {row["fate"]: row["traces"] for row in accounting(made)}
    assert list(rows) == ["in", "learned", "nothing", "skipped", "refused", "failed", "deferred"]
    assert rows["in"] == sum(number for fate, number in rows.items() if fate != "in")  # type: ignore[misc]
    assert json.dumps(accounting(made))


def test_traces_that_taught_nothing_new_are_not_in_the_list_of_losses() -> None:
    fates = (
        *learned(1),
        TraceFate(trace_id="t02", fate="nothing"),
        TraceFate(trace_id="t03", fate="failed", reason="AnswerMalformed"),
        TraceFate(trace_id="t04", fate="skipped", reason="duplicate of t01"),
    )
    assert unlearned(result(fates=fates)) == [
        {"trace": "t03", "fate": "failed", "why": "AnswerMalformed"},
        {"trace": "t04", "fate": "skipped", "why": "duplicate of t01"},
    ]


def costs(tokens: Amounts, cost: Amounts) -> dict[str, list[str]]:
    made = spent(result(model_calls={"reflect": 40, "curate": 6}, tokens=tokens, cost=cost))
    return {row[0]: row[1:] for row in rendered(made)}


def test_calls_tokens_and_money_are_shown_in_full() -> None:
    rows = costs(Amounts(this_run=1234567, total=23456789), Amounts(this_run=0.5, total=12.34567))
    assert rows["reflect"] == ["40"]
    assert rows["merge"] == ["0"]
    assert rows["tokens"] == ["1,234,567", "23,456,789"]
    assert rows["cost, US dollars"] == ["0.5000", "12.3457"]


def test_unknown_is_unknown_and_a_part_is_at_least() -> None:
    rows = costs(Amounts(this_run=None, total=None, at_least=True), Amounts(this_run=None, total=0.25, at_least=True))
    assert rows["tokens"] == ["unknown", "unknown"]
    assert rows["cost, US dollars"] == ["unknown", "at least 0.2500"]


def test_nothing_spent_is_zero_and_not_unknown() -> None:
    rows = costs(Amounts(this_run=0, total=0), Amounts(this_run=0, total=0.0))
    assert (rows["tokens"], rows["cost, US dollars"]) == (["0", "0"], ["0", "0.0000"])
