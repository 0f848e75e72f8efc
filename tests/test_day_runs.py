"""What there is to learn of a day, planned as its next run: late and changed traces, unfinished and repeated runs."""

from __future__ import annotations

from typing import Any

import pytest
from asking import memory
from run_records import DAY, items, request

from combee_core.day_runs import Choice, DayInput, choose, outlook
from combee_core.markers import mark, marker_of
from combee_core.ports import Store
from combee_core.records import Cut, Item, RunResult, Sizing, State, TraceFate
from combee_core.runs import Run
from combee_core.types import Unread


def day(count: int = 3, salt: str = "", *more: Item, unread: tuple[Unread, ...] = (), **asked: Any) -> DayInput:
    """The first `count` traces of the day and more."""
    return DayInput(request(source=DAY, **asked), (*items(count, salt), *more), unread)


def the_run(choice: Choice) -> Run:
    assert choice.run is not None
    return choice.run


def planned(choice: Choice) -> tuple[Item, ...]:
    return the_run(choice).plan().items


def end(run: Run, version: int = 1) -> None:
    """Let the run end without its mark."""
    run.finish(RunResult(playbook="p", version=version, digest="d", run=run.key))


def learn(store: Store, found: DayInput, base: int = 0, **how: Any) -> Choice:
    """Choose, and if there is work do it to the end."""
    choice = choose(store, found, base, **how)
    if choice.is_work:
        end(the_run(choice), base + 1)
        mark(store, the_run(choice).plan(), base + 1)
    return choice


def test_a_day_without_traces_is_no_work_and_leaves_nothing_behind() -> None:
    store = memory()
    assert choose(store, day(0), 0) == Choice("no traces")
    assert store.list("") == []


def test_a_new_day_is_planned_whole_on_the_given_version() -> None:
    choice = choose(memory(), day(3), 7)
    assert (choice.happened, choice.traces, choice.is_work) == ("learned", 3, True)
    assert (planned(choice), the_run(choice).plan().base_version) == (items(3), 7)


def test_a_learned_day_is_no_work_and_gives_its_last_run() -> None:
    store = memory()
    first = learn(store, day(3))
    again = choose(store, day(3), 1)
    assert again == Choice("already learned", first.run, 3, 1)


@pytest.mark.parametrize("change", [{"seed": 5}, {"copies": 3}])
def test_a_learned_day_stays_learned_under_other_settings(change: dict[str, Any]) -> None:
    store = memory()
    learn(store, day(3))
    assert choose(store, day(3, **change), 1).happened == "already learned"


def test_late_traces_are_a_supplement_of_those_alone() -> None:
    store = memory()
    first = learn(store, day(3))
    late = learn(store, day(5), 1)
    assert (late.happened, planned(late), late.traces) == ("supplement", items(5)[3:], 2)
    assert the_run(late).plan().withdrawn == ()
    assert late.run != first.run
    assert choose(store, day(5), 2).happened == "already learned"
    assert marker_of(store, day().request).traces == 5


def test_a_changed_trace_is_a_supplement_whose_earlier_verdicts_are_withdrawn() -> None:
    store = memory()
    learn(store, day(3))
    changed = learn(store, DayInput(day().request, (*items(1, "new"), *items(3)[1:])), 1)
    assert planned(changed) == items(1, "new")
    assert the_run(changed).plan().withdrawn == ("t01",)
    assert marker_of(store, day().request).traces == 3


def test_a_trace_that_is_gone_is_no_news() -> None:
    store = memory()
    learn(store, day(3))
    assert choose(store, day(2), 1).happened == "already learned"
    assert choose(store, day(0), 1).happened == "already learned"


def test_a_supplement_does_not_name_again_what_could_not_be_read_before() -> None:
    store = memory()
    bad, worse = Unread(where="a:1", reason="cut", trace_id="x"), Unread(where="b:1", reason="cut", trace_id="y")
    learn(store, day(3, unread=(bad,)))
    late = learn(store, day(4, unread=(bad, worse)), 1)
    assert the_run(late).plan().unread == (worse,)


def test_a_supplement_is_planned_even_where_the_first_runs_records_are_gone() -> None:
    store = memory()
    bad = Unread(where="a:1", reason="cut", trace_id="x")
    first = the_run(learn(store, day(3)))
    for key in store.list(first.path("")):
        store.delete(key)
    late = choose(store, day(4, unread=(bad,)), 1)
    assert (planned(late), the_run(late).plan().unread) == (items(4)[3:], (bad,))


def test_late_traces_of_a_day_whose_first_run_is_gone_have_a_run_of_their_own_and_are_learned_once() -> None:
    store = memory()
    first = the_run(learn(store, day(3)))
    for key in store.list(first.path("")):
        store.delete(key)
    late = learn(store, day(4), 1)
    assert (late.happened, the_run(late).key != first.key) == ("supplement", True)
    assert marker_of(store, day().request).traces == 4
    assert choose(store, day(4), 2).happened == "already learned"
    later = learn(store, day(5), 2)
    assert (planned(later), marker_of(store, day().request).traces) == (items(5)[4:], 5)


# unfinished runs


def test_an_unfinished_run_is_gone_on_with_and_late_traces_wait_for_their_turn() -> None:
    store = memory()
    died = choose(store, day(3), 0)
    again = choose(store, day(5), 4)
    assert (again.run, planned(again), the_run(again).plan().base_version) == (died.run, items(3), 0)
    end(the_run(again))
    mark(store, the_run(again).plan(), 1)
    assert planned(choose(store, day(5), 1)) == items(5)[3:]


def test_an_unfinished_run_whose_traces_have_changed_meanwhile_is_planned_anew() -> None:
    store = memory()
    died = choose(store, day(3), 0)
    anew = choose(store, day(3, "changed"), 0)
    assert (anew.happened, planned(anew)) == ("learned", items(3, "changed"))
    assert anew.run != died.run


def test_a_run_that_only_waits_for_publishing_does_not_need_its_traces_any_more() -> None:
    store = memory()
    died = the_run(choose(store, day(3), 0))
    died.begin_sizing(Sizing(total=3, batch_size=40))
    died.save_state(State(number=1, state={}))
    assert choose(store, day(3, "changed"), 0).run == died


def test_so_does_one_that_a_cap_has_cut_and_none_that_has_a_batch_before_it() -> None:
    store = memory()
    died = the_run(choose(store, day(3), 0))
    died.begin_sizing(Sizing(total=3, batch_size=1))
    died.save_state(State(number=1, state={}))
    assert (died.expected, died.waits_for_publishing) == (3, False)
    died.end_early(Cut(batches=1, reason="the cap is reached"))
    assert (died.expected, died.waits_for_publishing) == (1, True)
    assert choose(store, day(2), 0).run == died
    assert choose(store, day(3, "changed"), 0).run == died


def test_a_run_whose_batch_size_is_still_measured_does_not_wait_for_publishing() -> None:
    run = Run(memory(), "r")
    assert (run.expected, run.waits_for_publishing) == (None, False)
    run.begin_sizing(Sizing(total=3, profile=(1,)))
    run.save_state(State(number=1, state={}))
    assert (run.expected, run.waits_for_publishing) == (None, False)
    run.end_early(Cut(batches=1, reason="the cap is reached"))
    assert (run.expected, run.waits_for_publishing) == (1, True)


def test_a_run_that_ended_without_leaving_its_mark_is_marked_and_not_repeated() -> None:
    store = memory()
    end(the_run(choose(store, day(3), 0)), 9)
    assert choose(store, day(3), 1).happened == "already learned"
    found = marker_of(store, day().request)
    assert (found.traces, found.runs[0].version) == (3, 9)


def test_what_a_run_deferred_stays_to_be_learned() -> None:
    store = memory()
    run = the_run(choose(store, day(3), 0))
    late = (TraceFate(trace_id="t02", fate="deferred", reason="the budget ended first"),)
    run.finish(RunResult(playbook="p", version=1, digest="d", run=run.key, fates=late))
    rest = choose(store, day(3), 1)
    assert (rest.happened, planned(rest)) == ("supplement", items(3)[1:2])


def test_an_unfinished_run_of_what_another_run_has_learned_is_let_lie() -> None:
    store = memory()
    choose(store, day(3), 0)
    learn(store, day(3), attempt="backfills/a/0001")
    assert choose(store, day(3), 1).happened == "already learned"
    assert planned(choose(store, day(4), 1)) == items(4)[3:]


def test_an_unfinished_supplement_is_gone_on_with() -> None:
    store = memory()
    learn(store, day(3))
    died = choose(store, day(4), 1)
    again = choose(store, day(4), 5)
    assert (again.happened, again.run) == ("supplement", died.run)


# learning anew


def test_again_learns_the_whole_day_once_more_and_goes_on_with_what_it_began() -> None:
    store = memory()
    first = learn(store, day(3))
    again = choose(store, day(3, again=True), 1)
    assert (again.happened, planned(again)) == ("learned", items(3))
    assert again.run != first.run
    assert choose(store, day(3, again=True), 1).run == again.run
    learn(store, day(3, again=True), 1)
    assert learn(store, day(3, again=True), 2).run not in (first.run, again.run)


def test_an_attempt_learns_a_day_anew_once() -> None:
    store = memory()
    first = learn(store, day(3))
    anew = learn(store, DayInput(day().request, (*items(1, "new"), *items(3)[1:])), 1, attempt="one")
    assert (anew.happened, len(planned(anew)), the_run(anew).plan().withdrawn) == ("learned", 3, ("t01",))
    assert anew.run != first.run
    again = DayInput(day().request, (*items(1, "new"), *items(3)[1:]))
    assert choose(store, again, 2, attempt="one").happened == "already learned"
    assert choose(store, again, 2, attempt="two").is_work
    assert choose(store, again, 2).happened == "already learned"


def test_an_attempt_that_died_is_gone_on_with() -> None:
    store = memory()
    learn(store, day(3))
    died = choose(store, day(3), 1, attempt="one")
    assert choose(store, day(3), 1, attempt="one").run == died.run


@pytest.mark.parametrize("attempt", ["", "one"])
def test_an_empty_day_is_not_learned_anew(attempt: str) -> None:
    assert choose(memory(), day(0, again=True), 0, attempt=attempt).happened == "no traces"


# looking only


def test_looking_writes_nothing_and_says_what_would_be_read() -> None:
    store = memory()
    assert outlook(store, day(3)) == Choice("learned", traces=3)
    assert store.list("") == []
    learn(store, day(3))
    assert outlook(store, day(5)) == Choice("supplement", traces=2)
    assert outlook(store, day(2)).happened == "already learned"
