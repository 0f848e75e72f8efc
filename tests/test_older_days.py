"""A day learned after a newer one adds its evidence and overwrites nothing newer; a changed trace counts once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from applying import the
from asking import memory
from builders import ACE, EMPTY, add, change, operation, vote
from hypothesis import given
from hypothesis import strategies as st
from lessons import trajectory
from run_records import DAY, plan, receipt, request

from combee_core.conclude import Results, conclude
from combee_core.playbook import Playbook
from combee_core.publish import publish
from combee_core.records import Plan, State
from combee_core.types import BulletTag, Delta, Merged, Operation, Reflected, Reflection, SetAside, Update, Vote
from combee_core.versions import Version, Versions

FIRST, SECOND, THIRD = (date(2026, 3, n) for n in (1, 2, 3))


def learned(book: Playbook, day: date | None, *ops: Operation, version: int = 1, **more: Any) -> Playbook:
    state: Playbook = ACE.apply(book, Update(day=day, operations=ops, **more), version).state
    return state


def refused(book: Playbook, day: date | None, *ops: Operation) -> list[str]:
    return [aside.reason for aside in ACE.apply(book, Update(day=day, operations=ops), 9).set_aside]


BOOK = learned(EMPTY, SECOND, add("Round last.", "t1"), add("Quote in cents.", "t2"))
ROUND, QUOTE = BOOK.bullets


# what an older day may do


def test_a_bullet_carries_the_newest_day_that_changed_it() -> None:
    assert (ROUND.as_of, ROUND.created) == (SECOND, 1)
    later = learned(BOOK, THIRD, change(ROUND, "Round at the end.", "t9"), version=2)
    assert the(later, ROUND.id).as_of == THIRD
    assert the(later, QUOTE.id).as_of == SECOND


def test_an_older_days_changes_of_a_newer_bullet_are_set_aside_with_the_reason() -> None:
    ops = [change(ROUND, "Never round."), operation("REMOVE", "", QUOTE), operation("MERGE", "Both.", ROUND, QUOTE)]
    reasons = refused(BOOK, FIRST, *ops)
    assert len(reasons) == 3
    assert "2026-03-02; 2026-03-01 does not overwrite it" in reasons[0]
    assert learned(BOOK, FIRST, *ops).digest == BOOK.digest


def test_a_day_may_change_what_it_or_an_older_day_wrote() -> None:
    for day in (SECOND, THIRD, None):
        assert refused(BOOK, day, change(ROUND, "Never round.")) == []


def test_what_no_day_wrote_may_be_changed_by_any() -> None:
    book = learned(EMPTY, None, add("Round last.", "t1"))
    (its,) = book.bullets
    assert its.as_of is None
    assert refused(book, FIRST, change(its, "Never round.")) == []


def test_an_older_days_additions_and_votes_count() -> None:
    votes = (vote(ROUND.id, "t7"),)
    book = learned(BOOK, FIRST, add("Ask for the unit.", "t7"), add("Round last.", "t7"), votes=votes, version=2)
    assert [bullet.text for bullet in book.bullets] == ["Round last.", "Quote in cents.", "Ask for the unit."]
    its = the(book, ROUND.id)
    assert (its.helpful, its.sources, its.updated, its.as_of) == (1, ("t1", "t7"), 2, SECOND)


def test_the_same_text_again_is_evidence_whatever_its_day() -> None:
    book = learned(BOOK, FIRST, change(ROUND, "Round last.", "t7"), version=2)
    assert the(book, ROUND.id).sources == ("t1", "t7")


def test_a_bullet_made_of_several_is_as_new_as_the_newest() -> None:
    book = learned(BOOK, THIRD, change(QUOTE, "Quote in euros."), version=2)
    round_, quote = book.bullets
    joined = learned(book, THIRD, operation("MERGE", "Round and quote.", round_, quote), version=3)
    assert the(joined, ROUND.id).as_of == THIRD


def of_day(day: date, key: str, base: int = 0) -> Plan:
    return plan(key=key, base_version=base, request=request(source=DAY.model_copy(update={"day": day})))


def states(day: date, base: Playbook, *ops: Operation, version: int) -> list[State]:
    update = Update(day=day, operations=ops)
    after = ACE.apply(base, update, version).state
    return [State(number=1, state=ACE.dump(after), update=update, receipts=(receipt(),), groups=1)]


def published(versions: Versions, made: Plan, recorded: list[State]) -> tuple[Version, tuple[SetAside, ...]]:
    version, aside = publish(made, recorded, versions, ACE, flow_run_id="f")
    assert version is not None
    return version, aside


def test_days_one_three_two_keep_the_newest_text_and_record_their_order() -> None:
    versions = Versions(memory(), "p")
    one, _ = published(versions, of_day(FIRST, "one"), states(FIRST, EMPTY, add("Round first.", "t1"), version=1))
    book: Playbook = ACE.load(one.state)
    (its,) = book.bullets
    newer = states(THIRD, book, change(its, "Round last.", "t3"), version=2)
    three, _ = published(versions, of_day(THIRD, "three", 1), newer)
    older = states(SECOND, book, change(its, "Never round.", "t2"), add("Ask for the unit.", "t2"), version=2)
    two, aside = published(versions, of_day(SECOND, "two", 1), older)
    assert [bullet.text for bullet in ACE.load(two.state).bullets] == ["Round last.", "Ask for the unit."]
    assert len(aside) == 1
    assert [(v.day, v.as_of) for v in (two, three, one)] == [(SECOND, THIRD), (THIRD, THIRD), (FIRST, FIRST)]
    assert [v.run for v in versions.chain()] == ["two", "three", "one"]


def test_an_older_day_that_was_planned_behind_a_newer_one_overwrites_nothing_either() -> None:
    versions = Versions(memory(), "p")
    three, _ = published(versions, of_day(THIRD, "three"), states(THIRD, EMPTY, add("Round last.", "t3"), version=1))
    book: Playbook = ACE.load(three.state)
    (its,) = book.bullets
    older = states(SECOND, book, change(its, "Never round.", "t2"), add("Ask.", "t2"), version=2)
    two, _ = published(versions, of_day(SECOND, "two", 1), older)
    assert [bullet.text for bullet in ACE.load(two.state).bullets] == ["Round last.", "Ask."]
    assert (two.day, two.as_of) == (SECOND, THIRD)


# withdrawn verdicts


def counts(book: Playbook, bullet_id: str = ROUND.id) -> tuple[int, int]:
    return the(book, bullet_id).helpful, the(book, bullet_id).harmful


def test_a_changed_traces_verdict_is_taken_back_before_its_new_one_is_counted() -> None:
    before = learned(BOOK, SECOND, votes=(vote(ROUND.id, "t7"), vote(ROUND.id, "t8")))
    after = learned(before, SECOND, votes=(vote(ROUND.id, "t7", "harmful"),), withdrawn=("t7",))
    assert (counts(before), counts(after)) == ((2, 0), (1, 1))
    assert [entry.trace_id for entry in the(after, ROUND.id).counted] == ["t7", "t8"]


def test_a_changed_trace_that_says_nothing_any_more_counts_no_longer() -> None:
    before = learned(BOOK, SECOND, votes=(vote(ROUND.id, "t7"), vote(QUOTE.id, "t7", "harmful")))
    after = learned(before, SECOND, withdrawn=("t7", "never-voted"))
    assert (counts(after), counts(after, QUOTE.id)) == ((0, 0), (0, 0))
    assert after.digest == BOOK.digest


def test_imported_counters_that_no_trace_stands_for_are_left_alone() -> None:
    imported = BOOK.model_copy(
        update={
            "sections": tuple(
                s.model_copy(update={"bullets": tuple(b.model_copy(update={"helpful": 16}) for b in s.bullets)})
                for s in BOOK.sections
            )
        }
    )
    assert counts(learned(imported, SECOND, withdrawn=("t1",))) == (16, 0)


VOTES = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["helpful", "harmful"])), max_size=6)


def cast(votes: Iterable[tuple[int, str]]) -> tuple[Vote, ...]:
    return tuple(vote(ROUND.id, f"t{n}", tag) for n, tag in votes)


@given(VOTES, VOTES, st.sets(st.integers(1, 4)))
def test_after_a_withdrawal_the_counters_are_those_of_the_verdicts_that_stand(
    first: list[tuple[int, str]], second: list[tuple[int, str]], changed: set[int]
) -> None:
    before = learned(BOOK, SECOND, votes=cast(first))
    after = learned(before, SECOND, votes=cast(second), withdrawn=tuple(f"t{n}" for n in changed))
    unchanged = [one for one in first if one[0] not in changed]
    met = {n for n, _ in unchanged}
    expected = learned(BOOK, SECOND, votes=cast([*unchanged, *(one for one in second if one[0] not in met)]))
    assert counts(after) == counts(expected)


def test_a_batch_withdraws_what_its_own_traces_had_said_and_knows_its_day() -> None:
    tag = BulletTag(bullet_id=ROUND.id, tag="helpful")
    traces = [trajectory(n).trace_id for n in (1, 2)]
    reflected = [Reflected(trace_id=t, fate="nothing", reflection=Reflection(trace_id=t, tags=(tag,))) for t in traces]
    results = Results(reflected=reflected, merged=Merged(delta=Delta()))
    made = of_day(SECOND, "a").model_copy(update={"withdrawn": (traces[0], "of-another-batch")})
    update = conclude(1, BOOK, 1, results, learner=ACE, plan=made, day=SECOND).update
    assert (update.day, update.withdrawn) == (SECOND, (traces[0],))
    assert conclude(1, BOOK, 1, results, learner=ACE).update.withdrawn == ()
