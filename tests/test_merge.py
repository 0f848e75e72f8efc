"""The groups' operations are merged, in halves where they must be."""

from __future__ import annotations

import pytest
from asking import client
from builders import EMPTY, add
from lessons import answer, insight
from staging import REFUSAL, last, retried, texts, tools, unless

from combee_core.client import Client
from combee_core.errors import AnswerMalformed, ModelTooLarge
from combee_core.merge import merge
from combee_core.testing import FlakyModel, ScriptedModel
from combee_core.types import Delta, Merged, SetAside


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


def test_an_operation_that_the_merger_will_not_read_passes_as_its_curator_wrote_it() -> None:
    model = ScriptedModel(unless(lambda r: insight(4) in last(r), REFUSAL))
    result = merged(client(model), delta(1, 2), delta(3, 4, 5))
    assert insight(4) in texts(result.delta)
    (fate,) = [fate for fate in result.delta.fates if fate.because]
    assert (fate.text, fate.fate) == (insight(4), "kept")
    assert fate.because.startswith("not merged: ")
    assert len(result.delta.fates) == 5


def test_a_malformed_merge_is_retried_and_then_raised() -> None:
    model = FlakyModel(ScriptedModel(lambda _: "no json"), {})
    with pytest.raises(AnswerMalformed):
        merged(client(model), delta(1), delta(2))
    assert model.calls == 3
