"""A batch without an orchestrator: the whole of map, shuffle and reduce on scripted models."""

from __future__ import annotations

from typing import Any

import pytest
from asking import client, memory, naps, run
from builders import ACE, EMPTY
from lessons import answer, insight, trajectory

from combee_core.calls import Request
from combee_core.client import Client
from combee_core.config import ModelSettings, RunSettings
from combee_core.errors import AnswerMalformed, ModelFault, ModelRefused, ModelUnusable, RunError, RunStopped
from combee_core.inline import Inline
from combee_core.records import Batch, State
from combee_core.scoring import SCORERS
from combee_core.simulation.model import SimulatedModel
from combee_core.testing import FlakyModel, ScriptedModel
from combee_core.types import Sample


def inline(of: Client, naive: bool = False, **settings: Any) -> Inline:
    own = RunSettings(model=ModelSettings(retry_delay=0.5), **settings)
    return Inline(ACE, of, own, SCORERS["exact"], run="night", naive=naive)


def batch(count: int, number: int = 1) -> Batch:
    return Batch(number=number, trajectories=tuple(trajectory(n) for n in range(1, count + 1)))


def learn(of: Client, count: int, naive: bool = False, **settings: Any) -> State:
    return run(inline(of, naive, **settings).iterate(batch(count), EMPTY))


def calls(of: Client) -> dict[str, int]:
    return of.ledger.calls("night")


def texts(state: State) -> set[str]:
    return {bullet.text for bullet in ACE.load(state.state).bullets}


@pytest.mark.parametrize(
    ("count", "groups", "merges"),
    [(0, 0, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 2, 1), (8, 2, 1), (9, 3, 1), (25, 5, 1)],
)
def test_the_number_of_calls_is_that_of_the_plan(count: int, groups: int, merges: int) -> None:
    asking = client(ScriptedModel(answer))
    state = learn(asking, count)
    assert calls(asking) == {"rollout": 0, "reflect": count, "curate": groups, "merge": merges}
    assert state.groups == groups
    assert texts(state) == {insight(n) for n in range(1, count + 1)}


def test_a_hundred_reflections_are_curated_in_ten_calls_and_merged_in_one() -> None:
    asking = client(ScriptedModel(answer))
    learn(asking, 100)
    assert calls(asking) == {"rollout": 0, "reflect": 100, "curate": 10, "merge": 1}


def test_a_single_trace_is_shown_to_the_curator_once() -> None:
    model = ScriptedModel(answer)
    learn(client(model), 1, copies=2)
    (curation,) = [r for r in model.requests if r.prompt.stage == "curate"]
    assert curation.prompt.messages[-1].content.count("insight:") == 1


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_copies_of_a_reflection_count_once(copies: int) -> None:
    """One trace tags a bullet helpful: +1, whatever the number of copies."""
    first = learn(client(ScriptedModel(answer)), 1)
    state = ACE.load(first.state)
    (bullet,) = state.bullets

    def tagging(request: Request) -> Any:
        said = answer(request)
        tagged = request.prompt.stage == "reflect" and request.prompt.item == "t05"
        return {**said, "bullet_tags": [{"id": bullet.id, "tag": "helpful"}]} if tagged else said

    work = inline(client(ScriptedModel(tagging)), copies=copies)
    after = ACE.load(run(work.iterate(batch(9), state)).state)
    found = after.find(bullet.id)
    assert (found.helpful, found.harmful) == (1, 0)


def test_the_order_of_the_input_does_not_matter() -> None:
    forwards = batch(9)
    backwards = Batch(number=1, trajectories=forwards.trajectories[::-1])
    for naive in (False, True):
        states = [run(inline(client(ScriptedModel(answer)), naive).iterate(b, EMPTY)) for b in (forwards, backwards)]
        assert states[0].state == states[1].state


def test_naive_learning_gives_everything_to_one_call() -> None:
    model = ScriptedModel(answer)
    asking = client(model)
    assert learn(asking, 9, naive=True).groups == 1
    assert calls(asking) == {"rollout": 0, "reflect": 9, "curate": 1, "merge": 0}


def test_naive_learning_from_nothing_makes_no_call() -> None:
    asking = client(ScriptedModel([]))
    assert learn(asking, 0, naive=True).groups == 0


def test_a_refused_trace_leaves_the_others_to_be_learned_from() -> None:
    def refusing(_: int, request: Request) -> Exception | None:
        return ModelRefused("policy") if request.prompt.item == "t05" else None

    state = learn(client(FlakyModel(ScriptedModel(answer), refusing)), 9)
    assert {f.trace_id: f.fate for f in state.fates}["t05"] == "refused"
    assert texts(state) == {insight(n) for n in range(1, 10) if n != 5}


def test_one_failed_reflection_of_forty_is_named_and_the_batch_goes_on() -> None:
    def breaking(request: Request) -> Any:
        return "no json" if request.prompt.item == "t05" else answer(request)

    asking = client(ScriptedModel(breaking))
    state = learn(asking, 40)
    (failed,) = [f for f in state.fates if f.fate == "failed"]
    assert failed.trace_id == "t05"
    assert "AnswerMalformed" in failed.reason
    assert "scripted/model" in failed.reason
    assert calls(asking)["reflect"] == 39 + 3
    assert naps(asking) == [0.5, 1.0]


def test_too_many_failed_reflections_fail_the_batch_before_any_curating() -> None:
    asking = client(ScriptedModel(lambda _: "no json"))
    with pytest.raises(RunError, match="4 of 4 reflections failed"):
        learn(asking, 4)
    assert calls(asking)["curate"] == 0


def test_a_passing_fault_is_retried() -> None:
    faults = {1: ModelFault("500"), 2: ModelFault("reset")}
    asking = client(FlakyModel(ScriptedModel(answer), faults))
    assert texts(learn(asking, 1)) == {insight(1)}
    assert calls(asking)["reflect"] == 3


def test_a_wrong_key_ends_the_batch_at_once_and_as_what_it_is() -> None:
    model = FlakyModel(ScriptedModel([]), lambda *_: ModelUnusable("401: set OPENAI_API_KEY"))
    with pytest.raises(ModelUnusable, match="OPENAI_API_KEY"):
        learn(client(model, concurrency=1), 40, max_failed=1.0)
    assert model.calls == 1


def test_a_stopped_client_ends_the_batch() -> None:
    asking = client(ScriptedModel([]))
    asking.stop("cancelled")
    with pytest.raises(RunStopped, match="cancelled"):
        learn(asking, 3, max_failed=1.0)


def test_a_group_that_fails_for_good_fails_the_batch_and_keeps_what_is_paid() -> None:
    store = memory()

    def breaking(request: Request) -> Any:
        return "no json" if request.prompt.item == "curate-g02" else answer(request)

    with pytest.raises(AnswerMalformed):
        learn(client(ScriptedModel(breaking), store), 9)
    again = client(ScriptedModel(answer), store)
    learn(again, 9)
    assert calls(again) == {"rollout": 0, "reflect": 0, "curate": 1, "merge": 1}


def test_samples_are_rolled_out_first() -> None:
    def solving(request: Request) -> Any:
        solved = {"reasoning": "", "bullet_ids": [], "final_answer": "7"}
        return solved if request.prompt.stage == "rollout" else answer(request)

    samples = tuple(Sample(id=f"t{n:02d}", context=f"Question {n}?", target="8") for n in (1, 2, 3, 4))
    asking = client(ScriptedModel(solving))
    state = run(inline(asking).iterate(Batch(number=1, samples=samples), EMPTY))
    assert calls(asking)["rollout"] == 4
    assert texts(state) == {insight(n) for n in (1, 2, 3, 4)}


def test_a_second_batch_builds_on_the_first() -> None:
    work = inline(client(ScriptedModel(answer)))
    first = run(work.iterate(batch(4), EMPTY))
    second = Batch(number=2, trajectories=tuple(trajectory(n) for n in range(5, 9)))
    state = run(work.iterate(second, ACE.load(first.state)))
    assert texts(state) == {insight(n) for n in range(1, 9)}


def test_the_simulated_model_gives_the_same_state_at_any_concurrency() -> None:
    states = {
        run(inline(client(SimulatedModel(), concurrency=slots)).iterate(batch(12), EMPTY)).model_dump_json(
            include={"state"}
        )
        for slots in (1, 8)
    }
    assert len(states) == 1
