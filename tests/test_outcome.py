"""Results of runs: totals over every process, notes, deferred traces."""

from __future__ import annotations

import pickle
from typing import Any

import httpx
import pytest
from asking import memory
from prefect.exceptions import PrefectHTTPStatusError
from run_records import DAY, KEY, learned, plan, receipt, request

from combee_core.calls import Usage
from combee_core.config import STAGES, ModelSettings
from combee_core.errors import ModelFault, RunError, StoreUnavailable
from combee_core.ledger import Ledger
from combee_core.outcome import (
    NothingLearned,
    cut_short,
    failed,
    failure_of,
    finished,
    replayed,
    tried_again,
    with_backlog,
)
from combee_core.records import Cut, Failure, Plan, RunResult, State, TraceFate
from combee_core.states import States
from combee_core.tally import MOST_SET_ASIDE
from combee_core.types import SetAside, Survival, Unread
from combee_core.versions import Version

GET = httpx.Request("GET", "http://127.0.0.1/api")
VERSION = Version(playbook="p", version=4, parent=3, digest="d", learner="ace", state={})


def state(number: int, *learned_from: int, groups: int = 2, **more: Any) -> State:
    return State(number=number, state={}, fates=learned(*learned_from), groups=groups, **more)


def result(
    made: Plan, states: list[State], ledger: Ledger | None = None, version: Version | None = VERSION
) -> RunResult:
    return finished(made, states, version, "empty", (), ledger or Ledger(memory()))


# the figures


def test_a_finished_run_names_its_version_and_accounts_for_every_trace() -> None:
    made = result(plan(3), [state(1, 1, 2, 3)])
    assert (made.playbook, made.version, made.digest, made.run) == ("p", 4, "d", KEY)
    assert (made.accounting.total, made.accounting.learned) == (3, 3)
    assert made.groups == (2,)
    assert made.error is None


def test_before_the_first_version_the_result_is_version_zero_with_the_empty_digest() -> None:
    made = result(plan(0), [], version=None)
    assert (made.version, made.digest) == (0, "empty")


def test_tokens_and_cost_of_all_processes_are_summed_once_each() -> None:
    store = memory()
    earlier = Ledger(store)
    earlier.paid(receipt("t01"))
    earlier.paid(receipt("t02", accepted=False))
    earlier.flush()
    now = Ledger(store)
    now.paid(receipt("t03"))
    recorded = [state(1, 1, 2, 3, receipts=(receipt("t01"), receipt("t03"), receipt("t03")))]
    made = result(plan(3), recorded, now)
    assert (made.tokens.this_run, made.tokens.total) == (120, 360)
    assert (made.cost.this_run, made.cost.total) == (0.01, 0.03)
    assert not made.cost.at_least


def test_answers_that_another_run_bought_cost_this_one_nothing() -> None:
    recorded = [state(1, 1, receipts=(receipt("t01", run="another"),))]
    made = result(plan(1), recorded)
    assert (made.tokens.total, made.cost.total) == (0, 0.0)


def test_an_unknown_price_is_unknown_and_the_total_is_at_least() -> None:
    ledger = Ledger(memory())
    ledger.paid(receipt("t01", usage=Usage(input_tokens=5, output_tokens=5)))
    made = result(plan(1), [state(1, 1)], ledger)
    assert (made.cost.this_run, made.cost.total, made.cost.at_least) == (None, None, True)
    assert (made.tokens.total, made.tokens.at_least) == (10, False)
    ledger.paid(receipt("t02"))
    assert result(plan(1), [state(1, 1)], ledger).cost.total == 0.01
    assert result(plan(1), [state(1, 1)], ledger).cost.at_least


def test_an_unknown_usage_is_unknown_and_not_zero() -> None:
    ledger = Ledger(memory())
    ledger.paid(receipt("t01", usage=Usage()))
    made = result(plan(1), [state(1, 1)], ledger)
    assert made.tokens.total is None
    assert made.tokens.at_least


@pytest.mark.parametrize("model", ["simulated/overload", "openai/gpt-4o"])
def test_a_run_is_simulated_if_the_stand_in_answered_under_whatever_name(model: str) -> None:
    made = result(plan(1), [state(1, 1, receipts=(receipt("t01", model=model),))])
    assert made.simulated == model.startswith("simulated/")


def test_a_run_of_the_stand_in_is_simulated_even_without_an_answer() -> None:
    simulated = plan(0, request=request(model=ModelSettings()))
    assert result(simulated, []).simulated


def test_what_was_set_aside_twice_is_told_once() -> None:
    aside = SetAside(what="x", reason="gone")
    made = finished(plan(1), [state(1, 1, set_aside=(aside,))], VERSION, "", [aside], Ledger(memory()))
    assert made.set_aside == (aside,)


def test_calls_and_survival_are_summed_over_the_batches() -> None:
    survival = (Survival(level="curate", before=4, after=3), Survival(level="merge", before=4, after=2))
    recorded = [state(1, 1, 2, 3, 4, calls=3, survival=survival), state(2, 5, 6, 7, 8, calls=2, survival=survival)]
    made = result(plan(8), recorded)
    assert made.calls == 5
    assert [(one.level, one.before, one.after) for one in made.survival] == [("curate", 8, 6), ("merge", 8, 4)]


def test_of_very_much_that_was_set_aside_the_rest_is_counted() -> None:
    many = tuple(SetAside(what=str(n), reason="gone") for n in range(MOST_SET_ASIDE + 7))
    made = result(plan(1), [state(1, 1, set_aside=many)])
    assert (len(made.set_aside), made.more_set_aside) == (MOST_SET_ASIDE, 7)


def test_states_that_lie_in_a_store_give_the_same_result() -> None:
    recorded = [state(1, 1, 2, receipts=(receipt("t01"),)), state(2, 3, receipts=(receipt("t03"),))]
    lazy = States(lambda number: recorded[number - 1], 2)
    assert finished(plan(3), lazy, VERSION, "", (), Ledger(memory())) == result(plan(3), recorded)
    failure = Failure(stage="", item="", message="x")
    of_lazy, of_list = (failed(plan(3), states, failure, Ledger(memory())) for states in (lazy, recorded))
    assert of_lazy == of_list


# notes


def test_an_empty_day_says_so() -> None:
    assert result(plan(0, request=request(source=DAY)), []).note == "no traces for 2026-03-02"


def test_an_empty_input_without_a_day_says_so() -> None:
    assert result(plan(0), []).note == "no traces"


def test_a_day_whose_traces_could_not_be_read_is_not_called_empty() -> None:
    unread = (Unread(where="a", reason="cut", trace_id="t1"), Unread(where="b", reason="unknown format"))
    made = result(plan(0, request=request(source=DAY), unread=unread), [])
    assert made.note == "no usable traces for 2026-03-02: all 1 were skipped"
    assert made.accounting.skipped == 1


def test_a_single_group_says_why() -> None:
    assert result(plan(3), [state(1, 1, 2, 3, groups=1)]).note == "single group: fewer than 4 reflections"


def test_a_single_group_in_one_of_many_batches_names_the_batch() -> None:
    made = plan(9, request=request(batch_size=4))
    recorded = [state(1, 1, 2, 3, 4), state(2, 5, 6, 7, 8), state(3, 9, groups=1)]
    assert result(made, recorded).note == "batch 3: single group: fewer than 4 reflections"


@pytest.mark.parametrize("groups", [0, 2, 10])
def test_otherwise_there_is_nothing_to_note(groups: int) -> None:
    assert result(plan(3), [state(1, 1, 2, 3, groups=groups)]).note == ""


# failed and replayed


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (RunError("curate-g02 failed", "curate", "curate-g02"), ("curate", "curate-g02")),
        (ModelFault("down"), ("model", request().settings.model.model)),
        (StoreUnavailable("away"), ("store", request().store)),
        (httpx.ConnectError("refused"), ("server", "Prefect")),
        (PrefectHTTPStatusError("500", request=GET, response=httpx.Response(500)), ("server", "Prefect")),
        (ZeroDivisionError(), ("start", "p")),
    ],
)
def test_a_failure_names_its_boundary_and_says_what_happened(error: Exception, where: tuple[str, str]) -> None:
    failure = failure_of(error, request())
    assert (failure.stage, failure.item) == where
    assert (str(error) or type(error).__name__) in failure.message


def test_what_a_failed_run_had_learned_is_deferred() -> None:
    made = plan(9, request=request(batch_size=4))
    failure = Failure(stage="curate", item="curate-g02", message="curate-g02 failed")
    made_of = failed(made, [state(1, 1, 2, 3, 4)], failure, Ledger(memory()))
    assert (made_of.version, made_of.digest, made_of.error) == (None, None, failure)
    assert (made_of.accounting.total, made_of.accounting.deferred, made_of.accounting.learned) == (9, 9, 0)
    assert {f.reason for f in made_of.fates} == {"not published", "the run stopped first"}


def test_a_failed_run_tells_what_it_cost() -> None:
    ledger = Ledger(memory())
    ledger.asked(KEY, "reflect")
    ledger.paid(receipt("t01"))
    made = failed(plan(1), [], Failure(stage="", item="", message="x"), ledger)
    assert (made.model_calls["reflect"], made.tokens.total, made.cost.total) == (1, 120, 0.01)


def test_fates_that_do_not_add_up_fail_the_run() -> None:
    with pytest.raises(RunError, match="does not add up"):
        result(plan(1), [state(1, 1, 2)])


def test_a_replayed_result_is_the_same_but_asked_and_spent_nothing() -> None:
    ledger = Ledger(memory())
    ledger.asked(KEY, "reflect")
    ledger.paid(receipt("t01"))
    made = result(plan(1), [state(1, 1)], ledger)
    again = replayed(made)
    assert again.model_calls == dict.fromkeys(STAGES, 0)
    assert (again.tokens.this_run, again.cost.this_run) == (0, 0)
    assert (again.tokens.total, again.cost.total) == (120, 0.01)
    assert (again.version, again.digest, again.accounting) == (made.version, made.digest, made.accounting)


# runs that learned nothing


def ended(*fates: str) -> State:
    """A state whose traces t01, t02, … have these fates."""
    its = [{"trace_id": f"t{n:02d}", "fate": fate, "reason": "why"} for n, fate in enumerate(fates, start=1)]
    return State(number=1, state={}, fates=tuple(TraceFate(**one) for one in its))


@pytest.mark.parametrize(
    "fates", [("refused",) * 3, ("refused", "failed", "nothing"), ("failed", "skipped", "skipped")]
)
def test_a_run_that_learned_from_none_since_most_were_refused_or_failed_has_an_error(fates: tuple[str, ...]) -> None:
    made = result(plan(3), [ended(*fates)])
    assert made.error is not None
    assert (made.error.stage, made.error.item) == ("learn", "t01")
    assert "nothing was learned: of 3 traces" in made.error.message
    assert "t01: why" in made.error.message
    assert "combee backlog list --playbook p" in made.error.message
    assert made.status == "failed"


@pytest.mark.parametrize(
    "fates",
    [("refused", "refused", "learned"), ("nothing",) * 3, ("nothing", "nothing", "refused"), ("skipped",) * 3],
)
def test_one_that_learned_or_had_nothing_to_learn_has_none(fates: tuple[str, ...]) -> None:
    made = result(plan(3), [ended(*fates)])
    assert (made.status, made.error) == ("done", None)


def test_a_run_that_a_cap_ended_before_it_learned_is_one_that_a_cap_ended() -> None:
    barren = result(plan(3), [ended("refused", "refused", "deferred")])
    cut = cut_short(barren, Cut(batches=1, reason="budget: 2 of 2 calls"))
    assert (cut.status, cut.error) == ("budget", None)
    assert "nothing was learned: of 3 traces 2 refused, 1 deferred" in cut.note


def test_a_nights_own_retry_that_settles_nothing_is_done_and_any_other_result_stays() -> None:
    barren = result(plan(2), [ended("refused", "failed")])
    again = tried_again(barren)
    assert (again.status, again.error, again.fates) == ("done", None, barren.fates)
    learned_some = result(plan(2), [ended("learned", "failed")])
    assert tried_again(learned_some) == learned_some


def test_that_no_trace_taught_anything_is_said() -> None:
    assert result(plan(3), [ended("nothing", "nothing", "nothing")]).note == "none of 3 traces taught anything"


def test_the_error_of_a_run_that_learned_nothing_carries_its_result_into_other_processes() -> None:
    error = NothingLearned(result(plan(1), [ended("refused")]))
    copied = pickle.loads(pickle.dumps(error))
    assert copied.result == error.result
    assert (str(copied), copied.stage, copied.item) == (str(error), "learn", "t01")


def test_a_night_and_its_backlog_are_one_result_where_the_playbook_stands_afterwards() -> None:
    night, ledger = result(plan(3), [ended("learned", "learned", "refused")]), Ledger(memory())
    ledger.paid(receipt("t03"))
    later = VERSION.model_copy(update={"version": 5, "digest": "e"})
    again = result(plan(2), [ended("learned", "failed")], ledger, later)
    both = with_backlog(night, again)
    assert (both.version, both.digest, both.accounting) == (5, "e", night.accounting)
    assert both.note == "backlog: 2 tried again, 1 settled, 1 left in it"
    assert both.tokens.this_run == 120
    assert both.model_calls == dict.fromkeys(STAGES, 0)


def test_a_backlog_that_a_cap_cut_short_gives_the_night_its_status_and_says_why() -> None:
    night, again = result(plan(1), [ended("learned")]), result(plan(2), [ended("learned", "deferred")])
    both = with_backlog(night, cut_short(again, Cut(batches=1, reason="budget: 9 of 9 calls")))
    assert (both.status, both.error) == ("budget", None)
    assert "1 left in it; budget: 9 of 9 calls" in both.note
    assert with_backlog(night, again).status == "done"


def test_a_cost_of_which_a_part_is_unknown_is_at_least_the_rest() -> None:
    known = result(plan(1), [ended("learned")])
    unknown = known.model_copy(update={"cost": known.cost.model_copy(update={"this_run": None, "total": None})})
    both = with_backlog(known, unknown)
    assert (both.cost.total, both.cost.at_least) == (0.0, True)
    assert with_backlog(unknown, unknown).cost.total is None
