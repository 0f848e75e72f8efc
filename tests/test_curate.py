"""A group is curated, in halves where it must be."""

from __future__ import annotations

from typing import Any

import pytest
from asking import client, memory
from builders import ACE, EMPTY, add
from lessons import answer, group, insight
from run_records import KEY
from staging import CUT, FILTERED, REFUSAL, last, retried, texts, tools, unless

from combee_core.base import estimate
from combee_core.calls import Request
from combee_core.client import Client
from combee_core.curate import curate, join
from combee_core.errors import AnswerTruncated, ModelFault, ModelRefused, ModelTooLarge
from combee_core.reserving import most
from combee_core.testing import ScriptedModel
from combee_core.types import Curated, Delta, SetAside


def curated(of: Client, *numbers: int) -> Curated:
    result: Curated = retried(lambda: curate(group(*numbers, number=3, of=4), EMPTY, **tools(of)))
    return result


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


def test_of_a_halved_group_only_the_refused_reflection_is_asked_again_after_a_restart() -> None:
    store = memory()
    model = ScriptedModel(unless(lambda r: insight(7) in last(r), REFUSAL))
    first = curated(client(model, store), *range(1, 14))
    calls = len(model.requests)
    again = curated(client(model, store), *range(1, 14))
    assert len(model.requests) == calls + 1
    assert (again.delta, again.refused) == (first.delta, first.refused)


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


def test_the_result_says_in_how_many_parts_a_group_was_read() -> None:
    assert curated(client(ScriptedModel(answer)), 1, 2, 3, 4).calls == 1
    large = ScriptedModel(unless(lambda r: last(r).count("insight:") > 2, ModelTooLarge("413")))
    assert curated(client(large), 1, 2, 3, 4).calls == 2
    refusing = ScriptedModel(unless(lambda r: insight(1) in last(r), REFUSAL))
    assert curated(client(refusing), 1, 2, 3, 4).calls == 3


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
    paid = asking.ledger.spend(KEY)
    assert paid.calls == len(model.requests) == 4
    assert paid.cost == 0.5


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


def test_what_an_estimate_takes_for_fitting_and_the_model_does_not_is_split_and_all_of_it_learned() -> None:
    """A model that litellm does not know, and whose tokenizer counts 1.77 times what is estimated."""
    whole = estimate(ACE.curate(EMPTY, group(*range(1, 9), number=3, of=4)).prompt.text)

    def is_too_large(request: Request) -> bool:
        return 1.77 * estimate(request.prompt.text) > 1.7 * whole

    model = ScriptedModel(unless(is_too_large, ModelTooLarge("413")))
    result = curated(client(model, context_tokens=whole), *range(1, 9))
    assert texts(result.delta) == [insight(n) for n in range(1, 9)]
    assert (result.refused, len(model.requests)) == ((), 3)
    assert all(most(request, None).tokens > 1.77 * estimate(request.prompt.text) for request in model.requests)
