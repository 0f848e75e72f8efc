"""Results of runs: totals over every process, notes, deferred traces."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from makers import (
    ACE,
    EMPTY,
    KEY,
    answer,
    client,
    insight,
    items,
    learned,
    memory,
    plan,
    receipt,
    request,
    run,
    trajectory,
)

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.config import ModelSettings, RunSettings, Source
from combee_core.errors import CombeeError, RunError
from combee_core.inline import Inline
from combee_core.ledger import STAGES, Ledger
from combee_core.outcome import failed, finished, replayed
from combee_core.publish import publish
from combee_core.records import Batch, Failure, Plan, RunResult, State
from combee_core.runs import Run, find_or_plan, next_batch
from combee_core.scoring import SCORERS
from combee_core.testing import ScriptedModel
from combee_core.types import SetAside, Unread
from combee_core.versions import Version, Versions

DAY = Source(uris=("/traces",), day=date(2026, 3, 2))
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


# whole runs, in several processes


class Night:
    """A run from its plan to its result, as the flow does it, with a model that may fail."""

    def __init__(self, store: Any, script: Any, count: int, size: int = 40) -> None:
        self.traces = [trajectory(n) for n in range(1, count + 1)]
        self.asking: Client = client(ScriptedModel(script), store)
        self.settings = RunSettings(batch_size=size, model=ModelSettings(retries=1))
        asked = request(source=DAY, batch_size=size)
        found = tuple(items(count)[n].model_copy(update={"digest": t.digest}) for n, t in enumerate(self.traces))
        self.run: Run = find_or_plan(store, asked, found, (), lambda: 0)
        self.versions = Versions(store, "p")

    def go(self) -> RunResult:
        """Do what is left, publish, record. Raises what failed."""
        made = self.run.plan()
        work = Inline(ACE, self.asking, self.settings, SCORERS["exact"], run=made.key)
        state = EMPTY
        for number in range(1, made.batch_count + 1):
            batch = self.run.batch(number) or self.run.start_batch(next_batch(made, number, self.traces))
            after = self.run.state(number) or self.run.save_state(self.iterate(work, batch, state))
            state = ACE.load(after.state)
        version, aside = publish(made, self.run.states(), self.versions, ACE, flow_run_id="f")
        ended = finished(made, self.run.states(), version, ACE.digest(EMPTY), aside, self.asking.ledger)
        return self.run.finish(ended)

    def iterate(self, work: Inline, batch: Batch, state: Any) -> State:
        return run(work.iterate(batch, state))

    def failed(self) -> RunResult:
        failure = Failure(stage="", item="", message="")
        return failed(self.run.plan(), self.run.states(), failure, self.asking.ledger)


PRICED = Usage(input_tokens=100, output_tokens=10, cost=0.01)


def said(request: Request) -> Completion:
    return Completion(text=json.dumps(answer(request)), usage=PRICED)


def test_an_empty_day_makes_no_call_and_no_version() -> None:
    night = Night(memory(), [], 0)
    made = night.go()
    assert (made.version, made.note) == (0, "no traces for 2026-03-02")
    assert made.model_calls == dict.fromkeys(STAGES, 0)
    assert night.versions.latest() is None


def test_a_day_of_one_trace_is_curated_once_and_not_merged() -> None:
    made = Night(memory(), said, 1).go()
    assert made.model_calls == {"rollout": 0, "reflect": 1, "curate": 1, "merge": 0}
    assert (made.version, made.groups, made.accounting.learned) == (1, (1,), 1)


def test_a_day_of_three_traces_says_why_there_is_one_group() -> None:
    made = Night(memory(), said, 3).go()
    assert made.note == "single group: fewer than 4 reflections"
    assert made.model_calls == {"rollout": 0, "reflect": 3, "curate": 1, "merge": 0}


def test_the_same_day_twice_is_a_no_op() -> None:
    store = memory()
    first = Night(store, said, 9).go()
    again = Night(store, [], 9)
    assert again.run.result() == first
    assert replayed(first).version == first.version
    assert [v.version for v in again.versions.chain()] == [1]


def test_a_run_that_was_killed_before_its_result_publishes_once_and_counts_everything_once() -> None:
    store = memory()
    first = Night(store, said, 9).go()
    store.delete(Night(store, [], 9).run.path("result.json"))
    again = Night(store, [], 9).go()
    assert (again.version, again.digest) == (first.version, first.digest)
    assert again.model_calls == dict.fromkeys(STAGES, 0)
    assert (again.tokens.this_run, again.tokens.total) == (0, first.tokens.total)
    assert (again.cost.this_run, again.cost.total) == (0.0, first.cost.total)


def test_the_total_holds_what_every_process_paid_for_good_answers_and_bad() -> None:
    store = memory()

    def breaking(request: Request) -> Completion:
        bad = request.prompt.item == "curate-g02" or (request.prompt.item == "t05" and request.seed == 0)
        return Completion(text="no json", usage=PRICED) if bad else said(request)

    first = Night(store, breaking, 13, size=9)
    with pytest.raises(CombeeError):
        first.go()
    broken = first.failed()
    paid = len(first.asking.ledger.receipts(first.run.key))
    assert paid == sum(broken.model_calls.values()) == 10 + 3 + 1
    assert broken.tokens.this_run == broken.tokens.total == paid * 110

    second = Night(store, breaking, 13, size=9)
    with pytest.raises(CombeeError):
        second.go()
    assert second.failed().tokens.total == (paid + 2) * 110
    assert second.failed().tokens.this_run == 2 * 110

    third = Night(store, said, 13, size=9).go()
    assert third.model_calls == {"rollout": 0, "reflect": 4, "curate": 1 + 2, "merge": 2}
    assert third.tokens.this_run == 9 * 110
    assert third.tokens.total == (paid + 2 + 9) * 110
    assert third.cost.total == pytest.approx((paid + 2 + 9) * 0.01)
    assert third.accounting.learned == 13


def test_a_day_learned_after_a_failure_is_the_day_learned_without_one() -> None:
    store = memory()

    def breaking(request: Request) -> Any:
        return "no json" if request.prompt.stage == "merge" else said(request)

    with pytest.raises(CombeeError):
        Night(store, breaking, 13, size=9).go()
    assert Night(store, said, 13, size=9).go().digest == Night(memory(), said, 13, size=9).go().digest


def test_what_bisecting_a_group_cost_is_in_the_total() -> None:
    def refusing(request: Request) -> Completion:
        no = request.prompt.stage == "curate" and insight(7) in request.prompt.messages[-1].content
        return Completion(text=None, refusal="no", usage=PRICED) if no else said(request)

    night = Night(memory(), refusing, 9)
    made = night.go()
    assert made.accounting.refused == 1
    assert made.accounting.learned == 8
    assert made.tokens.total == sum(made.model_calls.values()) * 110
