"""Runs and bullets as lines for a terminal."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from combee_core.cli.show import bullet_lines, run_lines
from combee_core.playbook import Bullet
from combee_core.records import Accounting, Amounts, DayResult, RunResult, Sizing, TraceFate
from combee_core.types import Survival


def lines(**changes: Any) -> list[str]:
    accounting = Accounting.model_validate({"in": 3, "learned": 2, "refused": 1})
    fates = (TraceFate(trace_id="t3", fate="refused", reason="will not read it"),)
    fields = {"playbook": "p", "version": 2, "digest": "0123456789abcdef", "accounting": accounting, "fates": fates}
    return list(run_lines(RunResult(**{**fields, **changes})))


def test_a_run_is_told_in_figures_and_names_what_was_not_learned() -> None:
    said = lines(tokens=Amounts(this_run=10, total=1500), cost=Amounts(this_run=0.0, total=0.25))
    assert said[0] == "p: version 2, digest 0123456789ab"
    assert "traces: 3 in, 2 learned, 1 refused" in said
    assert "tokens: 10 now, 1,500 in all" in said
    assert "cost in US dollars: 0.0000 now, 0.2500 in all" in said
    assert said[-1] == "  refused: t3: will not read it"


def test_traces_that_were_only_put_off_are_a_line_for_each_reason() -> None:
    ends = [("t1", "deferred", "the run stopped first"), ("t2", "failed", "no JSON"), ("t3", "deferred", "a cap")]
    more = [(f"u{n}", "deferred", "the run stopped first") for n in range(1_200)]
    fates = tuple(TraceFate(trace_id=name, fate=fate, reason=why) for name, fate, why in ends + more)
    assert lines(fates=fates)[-3:] == [
        "  failed: t2: no JSON",
        "  deferred: 1,201 traces: the run stopped first",
        "  deferred: 1 trace: a cap",
    ]


@pytest.mark.parametrize(
    ("cost", "word"),
    [
        (Amounts(this_run=None, total=None, at_least=True), "unknown now, unknown in all"),
        (Amounts(this_run=None, total=0.5, at_least=True), "unknown now, at least 0.5000 in all"),
    ],
)
def test_unknown_money_is_never_nothing(cost: Amounts, word: str) -> None:
    assert f"cost in US dollars: {word}" in lines(cost=cost)


def test_what_is_special_is_said_first() -> None:
    assert lines(simulated=True)[0].startswith("(simulated")
    assert lines(version=0)[0] == "p: no version yet"
    assert not any("version" in line for line in lines(version=None, digest=None))


@pytest.mark.parametrize(
    ("sizing", "told"),
    [
        (Sizing(total=240, batch_size=40, reason="40, as given"), "batch size: 40, as given"),
        (
            Sizing(total=240, profile=(5, 10), batch_size=31, reason="plateau of 31.2"),
            "batch size: 31 (after 5, 10 to measure): plateau of 31.2",
        ),
    ],
)
def test_the_batch_size_is_told_with_its_reason(sizing: Sizing, told: str) -> None:
    assert told in lines(sizing=sizing)


@pytest.mark.parametrize("sizing", [None, Sizing(total=240, profile=(5, 10), reason="measuring")])
def test_a_batch_size_that_is_not_known_is_not_told(sizing: Sizing | None) -> None:
    assert not any("batch size" in line for line in lines(sizing=sizing))


def test_groups_read_in_parts_and_what_became_of_the_insights_are_a_line_each() -> None:
    levels = (Survival(level="curate", before=40, after=31), Survival(level="merge", before=40, after=29))
    said = lines(groups=(4, 6), calls=12, survival=levels)
    assert "10 groups were read in 12 calls: some were too large, cut or refused" in said
    assert "insights: 40 distinct, 31 left the curators, 29 the merge (estimated)" in said
    assert not any("groups" in line or "insights" in line for line in lines(groups=(4, 6), calls=10))


@pytest.mark.parametrize(
    ("bullet", "second"),
    [
        (Bullet(id="a-1", text="x", sources=("t1", "t2")), "    from t1, t2"),
        (Bullet(id="a-1", text="x", origin="import"), "    imported"),
    ],
)
def test_a_bullet_says_where_it_comes_from(bullet: Bullet, second: str) -> None:
    assert list(bullet_lines(bullet)) == ["[a-1] helpful=0 harmful=0 :: x", second]


def test_several_days_have_a_line_each_and_one_alone_has_none() -> None:
    one = DayResult(day=date(2026, 3, 2), happened="already learned", traces=20, version=7, run="r1")
    two = DayResult(day=date(2026, 3, 3), happened="named only", traces=1_000)
    said = lines(days=(one, two))
    assert said[1].split() == ["day", "traces", "version", "calls", "run"]
    assert said[2].split() == ["2026-03-02", "already", "learned", "20", "7", "0", "r1"]
    assert said[3].split() == ["2026-03-03", "named", "only", "1000", "-", "0", "-"]
    assert not any("2026-03-02" in line for line in lines(days=(one,)))
