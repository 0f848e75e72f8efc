"""The stages that call a model: rollout, reflect, curate, merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from makers import ACE, EMPTY, KEY, add, answer, client, group, insight, memory, run, trajectory

from combee_core.calls import Completion, Request, Usage
from combee_core.client import Client
from combee_core.curate import curate, join
from combee_core.errors import (
    AnswerMalformed,
    AnswerTruncated,
    CombeeError,
    ModelFault,
    ModelRefused,
    ModelTooLarge,
    ModelUnusable,
)
from combee_core.merge import merge
from combee_core.reflect import reflect
from combee_core.rollout import rollout
from combee_core.scoring import SCORERS
from combee_core.testing import FlakyModel, ScriptedModel
from combee_core.types import Curated, Delta, Merged, Sample, SetAside

SAMPLE = Sample(id="s1", context="What is 6 times 7?", target="42")
SOLVED = {"reasoning": "six sevens", "bullet_ids": ["misc-00001"], "final_answer": "42"}
REFUSAL = Completion(text=None, refusal="I will not read that")
FILTERED = Completion(text=None, finish="content_filter")
CUT = Completion(text="{", finish="length", usage=Usage(input_tokens=1, output_tokens=1, cost=0.25))


def tools(of: Client) -> dict[str, Any]:
    return {"learner": ACE, "client": of, "run": KEY}


def retried(stage: Callable[[], Any], retries: int = 2) -> Any:
    """A stage as the orchestrator runs it."""
    for _ in range(retries):
        try:
            return run(stage())
        except CombeeError as error:
            if not error.retryable:
                raise
    return run(stage())


def last(request: Request) -> str:
    return request.prompt.messages[-1].content


def unless(bad: Callable[[Request], bool], instead: Any) -> Callable[[Request], Any]:
    """A diligent model, but for some requests."""
    return lambda request: instead if bad(request) else answer(request)


# rollout


def solve(of: Client) -> Any:
    return run(rollout(SAMPLE, EMPTY, scorer=SCORERS["number"], **tools(of)))


def test_a_sample_becomes_a_scored_trajectory() -> None:
    rolled = solve(client(ScriptedModel([SOLVED])))
    assert rolled.sample_id == "s1"
    assert rolled.trajectory.trace_id == "s1"
    assert rolled.trajectory.task == SAMPLE.context
    assert rolled.trajectory.outcome.score == 1.0
    assert rolled.trajectory.cited == ("misc-00001",)
    assert "six sevens" in rolled.trajectory.steps[0].text
    assert [r.stage for r in rolled.receipts] == ["rollout"]


def test_a_wrong_answer_scores_zero_and_not_nothing() -> None:
    rolled = solve(client(ScriptedModel([{**SOLVED, "final_answer": "41"}])))
    assert rolled.trajectory.outcome.score == 0.0


def test_a_sample_that_is_refused_has_a_reason_and_no_trajectory() -> None:
    rolled = solve(client(ScriptedModel([REFUSAL])))
    assert rolled.trajectory is None
    assert "I will not read that" in rolled.reason


def test_a_sample_that_is_too_large_says_so() -> None:
    rolled = solve(client(ScriptedModel([]), context_tokens=10))
    assert rolled.trajectory is None
    assert rolled.reason.startswith("too large: s1")


def test_other_errors_of_a_rollout_are_raised() -> None:
    with pytest.raises(ModelFault):
        solve(client(ScriptedModel([ModelFault("500")])))


# reflect


def reflected(of: Client, number: int = 3, **changes: Any) -> Any:
    return run(reflect(trajectory(number, **changes), EMPTY, **tools(of)))


def test_a_run_that_teaches_something_is_an_insight() -> None:
    result = reflected(client(ScriptedModel(answer)))
    assert (result.trace_id, result.fate) == ("t03", "insight")
    assert result.reflection.key_insight == insight(3)
    assert [r.item for r in result.receipts] == ["t03"]


def test_a_run_that_teaches_nothing_is_nothing_and_keeps_its_tags() -> None:
    said = {"key_insight": "", "bullet_tags": [{"id": "misc-00001", "tag": "helpful"}]}
    result = reflected(client(ScriptedModel([said])))
    assert result.fate == "nothing"
    assert result.reflection.tags[0].tag == "helpful"


@pytest.mark.parametrize("no", [REFUSAL, FILTERED, ModelRefused("400: policy")])
def test_a_refused_trace_is_a_result_with_its_id_after_one_call(no: Any) -> None:
    model = ScriptedModel([no])
    asking = client(model)
    result = retried(lambda: reflect(trajectory(3), EMPTY, **tools(asking)))
    assert (result.trace_id, result.fate, result.reflection) == ("t03", "refused", None)
    assert result.reason
    assert len(model.requests) == 1


def test_a_trace_that_is_too_large_is_skipped_with_its_size() -> None:
    result = reflected(client(ScriptedModel([]), context_tokens=50))
    assert result.fate == "skipped"
    assert result.reason.startswith("too large: t03: about")


def test_a_trace_that_the_provider_finds_too_large_is_skipped() -> None:
    result = reflected(client(ScriptedModel([ModelTooLarge("413 request too large")])))
    assert result.fate == "skipped"
    assert "413" in result.reason


@pytest.mark.parametrize("bad", ["no json", CUT, ModelFault("reset"), ModelUnusable("401")])
def test_other_errors_of_a_reflection_are_raised(bad: Any) -> None:
    with pytest.raises(CombeeError):
        reflected(client(ScriptedModel([bad])))


# curate


def curated(of: Client, *numbers: int) -> Curated:
    result: Curated = retried(lambda: curate(group(*numbers, number=3, of=4), EMPTY, **tools(of)))
    return result


def texts(delta: Delta) -> list[str]:
    return [op.text for op in delta.operations]


def test_a_groups_operations_name_the_traces_behind_them() -> None:
    result = curated(client(ScriptedModel(answer)), 1, 2, 3)
    assert result.group == 3
    assert texts(result.delta) == [insight(n) for n in (1, 2, 3)]
    assert [op.sources for op in result.delta.operations] == [("t01",), ("t02",), ("t03",)]
    assert {op.origin for op in result.delta.operations} == {"curate-g03"}
    assert result.refused == ()


@pytest.mark.parametrize("no", [REFUSAL, FILTERED, ModelRefused("400: policy")])
def test_one_bad_trace_of_thirteen_is_found_by_halving_and_twelve_are_learned_from(no: Any) -> None:
    model = ScriptedModel(unless(lambda r: insight(7) in last(r), no))
    result = curated(client(model), *range(1, 14))
    assert result.refused == ("t07",)
    assert sorted(texts(result.delta)) == sorted(insight(n) for n in range(1, 14) if n != 7)
    assert len(model.requests) <= 2 * 13 - 1


def test_a_halved_group_is_not_asked_again_after_a_restart() -> None:
    store = memory()
    model = ScriptedModel(unless(lambda r: insight(7) in last(r), REFUSAL))
    first = curated(client(model, store), *range(1, 14))
    calls = len(model.requests)
    again = curated(client(model, store), *range(1, 14))
    assert len(model.requests) == calls
    assert again == first


def test_a_group_that_is_too_large_is_split() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count("insight:") > 3, ModelTooLarge("413")))
    result = curated(client(model), *range(1, 9))
    assert texts(result.delta) == [insight(n) for n in range(1, 9)]
    assert len(model.requests) == 1 + 2 + 4


def test_a_group_above_the_token_limit_is_split_before_it_is_sent() -> None:
    large = client(ScriptedModel(answer))
    whole = len(ACE.curate(EMPTY, group(*range(1, 9))).prompt.text) // 4
    model = ScriptedModel(answer)
    limited = client(model, context_tokens=whole - 20)
    assert texts(curated(limited, *range(1, 9)).delta) == texts(curated(large, *range(1, 9)).delta)
    assert len(model.requests) == 2


def test_a_cut_group_is_asked_once_with_more_room_and_then_halved_with_one_retry_in_all() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count("insight:") > 2, CUT))
    asking = client(model, max_output_tokens=100, retries=1)
    result = retried(lambda: curate(group(*range(1, 9)), EMPTY, **tools(asking)), retries=1)
    assert texts(result.delta) == [insight(n) for n in range(1, 9)]
    rooms = [(last(r).count("insight:"), r.max_output_tokens) for r in model.requests]
    assert rooms[:2] == [(8, 100), (8, 200)]
    assert all(room == 200 for _, room in rooms[1:])
    assert len(rooms) == 2 + 2 + 4


def test_what_bisected_groups_cost_is_in_the_ledger() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count("insight:") > 1, CUT))
    asking = client(model, retries=1)
    retried(lambda: curate(group(1, 2), EMPTY, **tools(asking)), retries=1)
    paid = asking.ledger.receipts(KEY)
    assert len(paid) == len(model.requests) == 4
    assert sum(r.usage.cost or 0 for r in paid) == 0.5


@pytest.mark.parametrize("bad", [ModelTooLarge("413"), CUT])
def test_a_single_reflection_that_is_too_much_even_alone_fails_its_group(bad: Any) -> None:
    model = ScriptedModel(unless(lambda r: insight(2) in last(r), bad))
    with pytest.raises((ModelTooLarge, AnswerTruncated)) as error:
        curated(client(model), 1, 2, 3)
    assert not error.value.retryable


def test_copies_of_a_refused_trace_are_named_once() -> None:
    model = ScriptedModel(unless(lambda r: insight(2) in last(r), REFUSAL))
    assert curated(client(model), 1, 2, 2, 3).refused == ("t02",)


def test_a_fault_in_one_half_is_retried_without_buying_the_other_again() -> None:
    fails = iter([ModelFault("reset")])

    def script(request: Request) -> Any:
        if last(request).count("insight:") > 2:
            return ModelTooLarge("413")
        return next(fails, answer(request)) if insight(1) in last(request) else answer(request)

    model = ScriptedModel(script)
    result = curated(client(model), 1, 2, 3, 4)
    assert texts(result.delta) == [insight(n) for n in (1, 2, 3, 4)]
    assert sum(insight(3) in last(r) and insight(1) not in last(r) for r in model.requests) == 1


def test_an_empty_list_is_a_valid_answer_and_no_operation() -> None:
    model = ScriptedModel([{"operations": []}])
    assert curated(client(model), 1, 2).delta == Delta()
    assert len(model.requests) == 1


def test_joined_deltas_keep_everything_in_order() -> None:
    aside = SetAside(what="x", reason="y")
    joined = join([Delta(operations=(add("a"),)), Delta(set_aside=(aside,)), Delta(operations=(add("b"),))])
    assert texts(joined) == ["a", "b"]
    assert joined.set_aside == (aside,)


# merge


def merged(of: Client, *deltas: Delta) -> Merged:
    result: Merged = retried(lambda: merge(deltas, EMPTY, **tools(of)))
    return result


def delta(*numbers: int, origin: str = "curate-g01") -> Delta:
    return Delta(operations=tuple(add(insight(n), f"t{n:02d}", origin=origin) for n in numbers))


@pytest.mark.parametrize("deltas", [(), (Delta(),), (Delta(), Delta()), (delta(1, 2),), (Delta(), delta(1), Delta())])
def test_one_groups_operations_alone_need_no_call(deltas: tuple[Delta, ...]) -> None:
    model = ScriptedModel([])
    result = merged(client(model), *deltas)
    assert model.requests == []
    assert result.delta.operations == tuple(op for d in deltas for op in d.operations)
    assert all(fate.fate == "kept" for fate in result.delta.fates)
    assert len(result.delta.fates) == len(result.delta.operations)


def test_the_operations_of_two_groups_are_merged_in_one_call() -> None:
    model = ScriptedModel(answer)
    result = merged(client(model), delta(1, 2), delta(3, origin="curate-g02"))
    assert len(model.requests) == 1
    assert texts(result.delta) == [insight(n) for n in (1, 2, 3)]
    assert [op.sources for op in result.delta.operations] == [("t01",), ("t02",), ("t03",)]
    assert len(result.delta.fates) == 3


def test_what_the_groups_set_aside_is_kept() -> None:
    aside = SetAside(what="x", reason="unknown key")
    result = merged(client(ScriptedModel(answer)), delta(1), Delta(operations=delta(2).operations, set_aside=(aside,)))
    assert aside in result.delta.set_aside


def test_a_merge_that_is_too_large_is_done_in_halves() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count('"ADD"') > 2, ModelTooLarge("413")))
    result = merged(client(model), delta(1, 2), delta(3, 4, 5))
    assert texts(result.delta) == [insight(n) for n in range(1, 6)]
    assert len(result.delta.fates) == 5


def test_an_operation_that_the_merger_will_not_read_is_set_aside_by_name() -> None:
    model = ScriptedModel(unless(lambda r: insight(4) in last(r), REFUSAL))
    result = merged(client(model), delta(1, 2), delta(3, 4, 5))
    assert insight(4) not in texts(result.delta)
    assert [aside.what for aside in result.delta.set_aside] == [insight(4)]
    assert [fate.text for fate in result.delta.fates if fate.fate == "dropped"] == [insight(4)]
    assert len(result.delta.fates) == 5


def test_a_malformed_merge_is_retried_and_then_raised() -> None:
    model = FlakyModel(ScriptedModel(lambda _: "no json"), {})
    with pytest.raises(AnswerMalformed):
        merged(client(model), delta(1), delta(2))
    assert model.calls == 3
