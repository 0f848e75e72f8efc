"""Whole runs from plan to result, in several processes, with a model that may fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import client, memory, run
from builders import ACE, EMPTY
from lessons import answer, insight, trajectory
from run_records import DAY, request

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.config import STAGES, ModelSettings, RunSettings
from combee_core.cutting import next_batch
from combee_core.errors import CombeeError
from combee_core.inline import Inline
from combee_core.outcome import failed, finished, replayed
from combee_core.publish import publish
from combee_core.records import Batch, Failure, Item, RunResult, Sizing, State
from combee_core.runs import Run, find_or_plan
from combee_core.scoring import SCORERS
from combee_core.testing import ScriptedModel
from combee_core.versions import Versions


class Night:
    """A run from its plan to its result, as the flow does it, with a model that may fail."""

    def __init__(self, store: Any, script: Any, count: int, size: int = 40) -> None:
        self.traces = [trajectory(n) for n in range(1, count + 1)]
        self.asking: Client = client(ScriptedModel(script), store)
        self.settings = RunSettings(batch_size=size, merge="paper", model=ModelSettings(retries=1))
        asked = request(source=DAY, batch_size=size, merge="paper")
        found = tuple(Item(id=f"t{n:02d}", digest=t.digest) for n, t in enumerate(self.traces, start=1))
        self.run: Run = find_or_plan(store, asked, found, (), 0)
        self.versions = Versions(store, "p")

    def go(self) -> RunResult:
        """Do what is left, publish, record. Raises what failed."""
        made = self.run.plan()
        work = Inline(ACE, self.asking, self.settings, SCORERS["exact"], run=made.key)
        state = EMPTY
        by_id = {trace.trace_id: trace for trace in self.traces}
        sizing = Sizing(total=len(made.items), batch_size=self.settings.batch_size)
        for number in range(1, sizing.count + 1):
            fresh = next_batch(made, number, sizing, lambda wanted: tuple(by_id[item.id] for item in wanted))
            batch = self.run.batch(number) or self.run.start_batch(fresh)
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
    paid = first.asking.ledger.total(first.run.key, ()).calls
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
