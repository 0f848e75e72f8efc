"""A batch's results become a state."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from builders import ACE, EMPTY, add
from hypothesis import example, given
from hypothesis import strategies as st
from lessons import group, insight, reflection
from run_records import receipt

from combee_core.conclude import Results, check_failures, conclude
from combee_core.errors import RunError
from combee_core.records import Cut
from combee_core.types import (
    BulletTag,
    Conflict,
    Curated,
    Delta,
    Merged,
    Operation,
    OperationFate,
    OperationKind,
    Reflected,
    RolledOut,
    SetAside,
)


def outcomes(failed: int, refused: int, fine: int) -> list[Reflected]:
    fates = ["failed"] * failed + ["refused"] * refused + ["nothing"] * fine
    return [
        Reflected.model_validate({"trace_id": f"t{n:02d}", "fate": fate, "reason": f"cause {n}"})
        for n, fate in enumerate(fates)
    ]


def test_two_failures_of_forty_are_allowed() -> None:
    check_failures(outcomes(2, 0, 38), 0.05)


def test_three_failures_of_forty_are_too_many_and_are_named() -> None:
    with pytest.raises(RunError, match="3 of 40 reflections failed, more than the 5% allowed") as error:
        check_failures(outcomes(3, 0, 37), 0.05)
    assert (error.value.stage, error.value.item) == ("reflect", "t00")
    assert "1 × cause 0; 1 × cause 1; 1 × cause 2 (t00, t01, t02)" in str(error.value)


def test_refused_traces_are_not_failures() -> None:
    check_failures(outcomes(2, 38, 0), 0.05)
    check_failures(outcomes(0, 40, 0), 0.0)
    check_failures(outcomes(1, 0, 4), 0.05, of=40)


def test_of_many_failures_three_are_named_and_the_others_counted() -> None:
    with pytest.raises(RunError, match=r"6 × others \(t00, t01, t02 and 7 more\)"):
        check_failures(outcomes(10, 0, 0), 0.5)


@pytest.mark.parametrize("most", [0.0, 0.05, 1.0])
def test_no_reflection_at_all_is_no_failure(most: float) -> None:
    check_failures([], most)


def test_none_is_allowed_where_the_limit_is_zero() -> None:
    check_failures(outcomes(0, 0, 5), 0.0)
    with pytest.raises(RunError):
        check_failures(outcomes(1, 0, 999), 0.0)


@given(st.integers(1, 400), st.integers(0, 100))
@example(100, 29)
def test_exactly_the_allowed_share_passes_and_one_more_fails(count: int, percent: int) -> None:
    allowed = math.floor(count * percent / 100 + 1e-12)
    check_failures(outcomes(allowed, 0, count - allowed), percent / 100)
    if allowed < count:
        with pytest.raises(RunError):
            check_failures(outcomes(allowed + 1, 0, count - allowed - 1), percent / 100)


# conclude


def batch(*ops: Operation, tags: tuple[BulletTag, ...] = (), fates: tuple[OperationFate, ...] = ()) -> Results:
    reflected = [
        Reflected(trace_id="t01", fate="insight", reflection=reflection(1, tags=tags), receipts=(receipt("t01"),)),
        Reflected(trace_id="t02", fate="nothing", reflection=reflection(2, ""), receipts=(receipt("t02"),)),
        Reflected(trace_id="t03", fate="refused", reason="no"),
    ]
    curated = [Curated(group=1, delta=Delta(operations=ops), receipts=(receipt("curate-g01", stage="curate"),))]
    merged = Merged(delta=Delta(operations=ops, fates=fates), receipts=(receipt("merge", stage="merge"),))
    return Results([], reflected, [group(1)], curated, merged)


def test_operations_are_applied_and_carry_the_version_to_be() -> None:
    state = conclude(2, EMPTY, 7, batch(add("ask for 20, not 0.2", "t01")), learner=ACE)
    (bullet,) = ACE.load(state.state).bullets
    assert (bullet.text, bullet.created, bullet.sources) == ("ask for 20, not 0.2", 7, ("t01",))
    assert (state.number, state.groups) == (2, 1)


def test_the_share_of_reflections_that_lay_twice_in_one_group_is_recorded() -> None:
    results = replace(batch(), groups=[group(1, 1), group(1, 2)])
    assert conclude(1, EMPTY, 1, results, learner=ACE).copies_met == 0.5
    assert conclude(1, EMPTY, 1, batch(), learner=ACE).copies_met == 0


def test_every_trace_has_its_fate() -> None:
    state = conclude(1, EMPTY, 1, batch(), learner=ACE)
    assert {f.trace_id: f.fate for f in state.fates} == {"t01": "learned", "t02": "nothing", "t03": "refused"}


def test_the_receipts_of_all_stages_are_kept() -> None:
    results = batch()
    rolled = RolledOut(sample_id="t01", receipts=(receipt("t01", stage="rollout"),))
    state = conclude(1, EMPTY, 1, Results([rolled], *list(vars(results).values())[1:]), learner=ACE)
    assert [r.stage for r in state.receipts] == ["rollout", "reflect", "reflect", "curate", "merge"]


def test_tags_are_counted_by_code_once_a_trace() -> None:
    state = ACE.load(conclude(1, EMPTY, 1, batch(add("a rule", "t01")), learner=ACE).state)
    (bullet,) = state.bullets
    tag = BulletTag(bullet_id=bullet.id, tag="helpful")
    voted = conclude(2, state, 2, batch(tags=(tag, tag)), learner=ACE)
    assert [b.helpful for b in ACE.load(voted.state).bullets] == [1]
    assert len(voted.update.votes) == 1


def test_the_counters_of_a_merge_are_sums_whatever_a_model_says() -> None:
    state = ACE.load(conclude(1, EMPTY, 1, batch(add("rule one", "t01"), add("rule two", "t02")), learner=ACE).state)
    one, two = state.bullets
    counted = state.model_copy(
        update={
            "sections": tuple(
                s.model_copy(
                    update={
                        "bullets": tuple(
                            b.model_copy(update=dict(zip(("helpful", "harmful"), tally, strict=True)))
                            for b, tally in zip(s.bullets, [(16, 5), (3, 1)], strict=False)
                        )
                    }
                )
                for s in state.sections
            )
        }
    )
    joined = Operation(
        kind=OperationKind.MERGE, text="both rules", bullet_ids=(one.id, two.id), seen=(one.text, two.text)
    )
    (bullet,) = ACE.load(conclude(2, counted, 2, batch(joined), learner=ACE).state).bullets
    assert (bullet.helpful, bullet.harmful) == (19, 6)


def test_what_was_set_aside_anywhere_is_in_the_record() -> None:
    results = batch(tags=(BulletTag(bullet_id="misc-00099", tag="helpful"),))
    aside = SetAside(what="an operation", reason="unknown key")
    merged = Merged(delta=Delta(set_aside=(aside,)))
    state = conclude(1, EMPTY, 1, Results([], results.reflected, results.groups, results.curated, merged), learner=ACE)
    assert aside in state.set_aside
    assert any("misc-00099" in item.what and item.reason for item in state.set_aside)


def test_an_empty_batch_changes_nothing() -> None:
    state = conclude(1, EMPTY, 1, Results(), learner=ACE)
    assert ACE.digest(ACE.load(state.state)) == ACE.digest(EMPTY)
    assert (state.fates, state.receipts, state.groups) == ((), (), 0)


def test_the_fates_of_operations_are_kept_for_the_summary() -> None:
    fate = OperationFate(text="a rule", origin="curate-g01", fate="kept")
    assert conclude(1, EMPTY, 1, batch(fates=(fate,)), learner=ACE).update.fates == (fate,)


# what the reduce did


def test_contradictions_are_in_the_update_for_the_summary() -> None:
    conflict = Conflict(texts=("a", "b"), sources=("t01",), reason="opposed words")
    results = replace(batch(), merged=Merged(delta=Delta(conflicts=(conflict,))))
    assert conclude(1, EMPTY, 1, results, learner=ACE).update.conflicts == (conflict,)


def test_the_parts_that_groups_were_read_in_are_added_up() -> None:
    curated = [Curated(group=1, delta=Delta(), calls=3), Curated(group=2, delta=Delta())]
    assert (
        conclude(
            1, EMPTY, 1, replace(batch(), curated=curated, groups=[group(1), group(2, number=2)]), learner=ACE
        ).calls
        == 4
    )


def test_survival_is_told_by_level_with_the_rounds_between() -> None:
    kept = Delta(operations=(add(insight(1), "t01"),))
    merged = Merged(delta=Delta(), between=(kept, kept))
    results = replace(batch(add(insight(1), "t01")), merged=merged)
    figures = conclude(1, EMPTY, 1, results, learner=ACE).survival
    assert [(one.level, one.before, one.after, one.estimated) for one in figures] == [
        ("curate", 1, 1, True),
        ("round 1", 1, 1, True),
        ("round 2", 1, 1, True),
        ("merge", 1, 0, True),
    ]
    known = conclude(1, EMPTY, 1, results, learner=ACE, tell=lambda text: {text}).survival
    assert [(one.after, one.estimated) for one in known] == [(1, False), (1, False), (1, False), (0, False)]


def test_what_the_playbook_says_already_is_not_counted_as_lost() -> None:
    taught = conclude(1, EMPTY, 1, batch(add(insight(1), "t01")), learner=ACE)
    (*_, figure) = conclude(2, ACE.load(taught.state), 2, batch(), learner=ACE).survival
    assert (figure.before, figure.after, figure.known) == (0, 0, 1)


def test_of_a_batch_that_a_cap_broke_off_only_what_was_read_counts() -> None:
    tag = BulletTag(bullet_id="calc-00001", tag="helpful")
    entries = [reflection(number, tags=(tag,)) for number in (1, 2)]
    reflected = [Reflected(trace_id=one.trace_id, fate="insight", reflection=one) for one in entries]
    groups = [group(number, number=number, of=2) for number in (1, 2)]
    curated = [Curated(group=2, delta=Delta(operations=(add(insight(2), "t02"),)))]
    cut = Cut(batches=1, reason="budget: 5 of 5 calls", part="1 of 2 groups of batch 1")
    results = Results([], reflected, groups, curated, Merged(delta=curated[0].delta), cut)
    state = conclude(1, EMPTY, 1, results, learner=ACE)
    assert [(fate.trace_id, fate.fate) for fate in state.fates] == [("t01", "deferred"), ("t02", "learned")]
    assert [(one.before, one.after) for one in state.survival] == [(1, 1), (1, 1)]
    assert {vote.trace_id for vote in state.update.votes} == {"t02"}
    assert (state.groups, state.cut) == (1, cut)


def test_a_batch_that_taught_nothing_has_no_survival() -> None:
    assert conclude(1, EMPTY, 1, Results(), learner=ACE).survival == ()
