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
from combee_core.pieces import MOST
from combee_core.records import Batch, State
from combee_core.scoring import SCORERS
from combee_core.simulation.model import SimulatedModel
from combee_core.survival import Tell
from combee_core.testing import FlakyModel, ScriptedModel
from combee_core.types import Sample


def inline(of: Client, naive: bool = False, tell: Tell | None = None, **settings: Any) -> Inline:
    """In the paper's form, where a test does not say otherwise: its calls are known beforehand."""
    own = RunSettings(model=ModelSettings(retry_delay=0.5), **{"grouping": "paper", "merge": "paper", **settings})
    return Inline(ACE, of, own, SCORERS["exact"], run="night", naive=naive, tell=tell)


def batch(count: int, number: int = 1) -> Batch:
    return Batch(number=number, trajectories=tuple(trajectory(n) for n in range(1, count + 1)))


def learn(of: Client, count: int, **how: Any) -> State:
    return run(inline(of, **how).iterate(batch(count), EMPTY))


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


def test_bounded_groups_and_clusters_make_more_and_smaller_calls() -> None:
    model = ScriptedModel(answer)
    asking = client(model)
    state = learn(asking, 40, grouping="bounded", max_group=5, copies=1, merge="cluster")
    assert (calls(asking)["curate"], state.groups, state.calls) == (8, 8, 8)
    asked = [r.prompt.messages[-1].content for r in model.requests]
    assert max(text.count("insight:") for text in asked if text.startswith("stage: curate")) == 5
    assert max([text.count('"ADD"') for text in asked if text.startswith("stage: merge")], default=0) <= MOST
    assert texts(state) == {insight(n) for n in range(1, 41)}


def test_three_levels_merge_in_two_rounds() -> None:
    asking = client(ScriptedModel(answer))
    state = learn(asking, 100, levels=3)
    assert calls(asking)["merge"] == 3 + 1
    assert [one.level for one in state.survival] == ["curate", "round 1", "merge"]
    assert texts(state) == {insight(n) for n in range(1, 101)}


def test_a_round_whose_calls_were_saved_is_not_asked_for_again() -> None:
    store = memory()

    def breaking(request: Request) -> Any:
        last_round = request.prompt.stage == "merge" and request.prompt.messages[-1].content.count('"ADD"') > 150
        return "no json" if last_round else answer(request)

    with pytest.raises(AnswerMalformed):
        learn(client(ScriptedModel(breaking), store), 100, levels=3)
    again = client(ScriptedModel(answer), store)
    learn(again, 100, levels=3)
    assert calls(again) == {"rollout": 0, "reflect": 0, "curate": 0, "merge": 1}


def test_the_survival_of_insights_is_told_by_level_and_counted_where_somebody_can_tell() -> None:
    def lossy(request: Request) -> Any:
        said = answer(request)
        return {**said, "operations": said["operations"][:4]} if request.prompt.stage == "curate" else said

    (naive, _), (curate, merge) = (
        [(one.before, one.after, one.estimated) for one in learn(client(ScriptedModel(lossy)), 9, **how).survival]
        for how in ({"naive": True, "tell": lambda text: {text}}, {"tell": lambda text: {text}})
    )
    assert naive == (9, 4, False)
    assert curate == merge
    assert 4 < curate[1] <= 9


def test_groups_are_limited_by_tokens_too_and_the_state_says_how_many_calls_they_took() -> None:
    model = ScriptedModel(answer)
    free = learn(client(model), 40)
    longest = max(len(r.prompt.text) for r in model.requests if r.prompt.stage == "curate")
    tight = ScriptedModel(answer)
    state = learn(client(tight, context_tokens=longest // 4 - 4), 40)
    assert (free.groups, free.calls) == (6, 6)
    assert state.groups == 6
    assert state.calls == sum(r.prompt.stage == "curate" for r in tight.requests) > 6
    assert texts(state) == texts(free)


def test_one_huge_trace_is_skipped_by_name_and_the_others_are_learned_from() -> None:
    huge = trajectory(7).model_copy(update={"task": "word " * 2_000_000})
    trajectories = tuple(huge if n == 7 else trajectory(n) for n in range(1, 13))
    work = inline(client(ScriptedModel(answer), context_tokens=32_000))
    state = run(work.iterate(Batch(number=1, trajectories=trajectories), EMPTY))
    (skipped,) = [fate for fate in state.fates if fate.fate == "skipped"]
    assert skipped.trace_id == "t07"
    assert "too large" in skipped.reason
    assert texts(state) == {insight(n) for n in range(1, 13) if n != 7}


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
    assert calls(asking)["reflect"] == 39 + asking.settings.attempts
    assert naps(asking) == [0.5, 1.0, 2.0]


def test_too_many_failed_reflections_fail_the_batch_before_any_curating() -> None:
    asking = client(ScriptedModel(lambda _: "no json"))
    with pytest.raises(RunError, match="4 of 4 reflections failed"):
        learn(asking, 4)
    assert calls(asking)["curate"] == 0


def test_how_many_reflections_may_fail_is_for_max_failed_to_say() -> None:
    def breaking(request: Request) -> Any:
        return "no json" if request.prompt.item == "t02" else answer(request)

    assert texts(learn(client(ScriptedModel(breaking)), 4, max_failed=0.25)) == {insight(n) for n in (1, 3, 4)}
    with pytest.raises(RunError, match="1 of 4 reflections failed"):
        learn(client(ScriptedModel(breaking)), 4, max_failed=0.2)


def test_what_a_cluster_call_reads_is_for_alike_to_say() -> None:
    def alike(share: float) -> int:
        asking = client(SimulatedModel())
        learn(asking, 30, grouping="bounded", merge="cluster", alike=share)
        return calls(asking)["merge"]

    assert alike(0.1) != alike(1.0)


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
    for form in {}, {"grouping": "bounded", "merge": "cluster", "max_group": 4}:
        states = {
            learn(client(SimulatedModel(), concurrency=slots), 30, **form).model_dump_json(include={"state", "update"})
            for slots in (1, 8)
        }
        assert len(states) == 1
