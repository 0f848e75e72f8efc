"""One merge call: in halves where it must be, with a fate for each operation in its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from asking import client
from builders import EMPTY, add
from lessons import answer, insight
from staging import CUT, REFUSAL, last, retried, texts, tools, unless

from combee_core.client import Client
from combee_core.errors import AnswerMalformed, ModelTooLarge
from combee_core.merge import merge
from combee_core.testing import FlakyModel, ScriptedModel
from combee_core.types import Merged, Operation


def merged(of: Client, part: Sequence[Operation], name: str = "merge-m01") -> Merged:
    result: Merged = retried(lambda: merge(part, name, EMPTY, **tools(of)))
    return result


def operations(*numbers: int) -> tuple[Operation, ...]:
    return tuple(add(insight(n), f"t{n:02d}") for n in numbers)


def ends(result: Merged) -> list[str]:
    """Where each operation that entered ended, by the text."""
    return ["dropped" if fate.into is None else result.delta.operations[fate.into].text for fate in result.delta.fates]


def test_a_part_is_merged_in_one_call_that_has_a_name_of_its_own() -> None:
    model = ScriptedModel(answer)
    result = merged(client(model), operations(1, 2, 3), name="merge-r2-m07")
    assert [request.prompt.item for request in model.requests] == ["merge-r2-m07"]
    assert texts(result.delta) == ends(result) == [insight(n) for n in (1, 2, 3)]
    assert [op.sources for op in result.delta.operations] == [("t01",), ("t02",), ("t03",)]
    assert [receipt.stage for receipt in result.receipts] == ["merge"]


def test_a_merge_that_is_too_large_is_done_in_halves() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count('"ADD"') > 2, ModelTooLarge("413")))
    result = merged(client(model), operations(1, 2, 3, 4, 5))
    assert sorted(texts(result.delta)) == sorted(insight(n) for n in range(1, 6))
    assert ends(result) == [insight(n) for n in range(1, 6)]


def test_a_merge_that_is_cut_is_done_in_halves() -> None:
    model = ScriptedModel(unless(lambda r: last(r).count('"ADD"') > 2, CUT))
    assert ends(merged(client(model), operations(1, 2, 3, 4))) == [insight(n) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("bad", [1, 3, 4])
def test_an_operation_that_the_merger_will_not_read_passes_as_its_curator_wrote_it(bad: int) -> None:
    model = ScriptedModel(unless(lambda r: insight(bad) in last(r), REFUSAL))
    result = merged(client(model), operations(1, 2, 3, 4, 5))
    assert ends(result) == [insight(n) for n in range(1, 6)]
    because = [fate.because for fate in result.delta.fates]
    assert because[bad - 1].startswith("not merged: ")
    assert [text for text in because if text] == [because[bad - 1]]


def test_fates_stay_in_the_order_of_what_entered_whatever_the_merger_writes_first() -> None:
    def backwards(numbers: list[int]) -> dict[str, object]:
        made = [{"type": "ADD", "content": insight(n), "from": [n]} for n in numbers]
        return {"operations": made, "dropped": [{"op": 2, "because": "too general"}]}

    result = merged(client(ScriptedModel([backwards([3, 1])])), operations(1, 2, 3))
    assert texts(result.delta) == [insight(3), insight(1)]
    assert ends(result) == [insight(1), "dropped", insight(3)]
    assert [fate.because for fate in result.delta.fates] == ["", "too general", ""]


def test_a_malformed_merge_is_retried_and_then_raised() -> None:
    model = FlakyModel(ScriptedModel(lambda _: "no json"), {})
    with pytest.raises(AnswerMalformed):
        merged(client(model), operations(1, 2))
    assert model.calls == 3
