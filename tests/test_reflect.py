"""A trace is reflected on, or has a reason."""

from __future__ import annotations

from typing import Any

import pytest
from asking import client, run
from builders import EMPTY
from lessons import answer, insight, trajectory
from staging import CUT, FILTERED, REFUSAL, retried, tools

from combee_core.client import Client
from combee_core.errors import CombeeError, ModelFault, ModelRefused, ModelTooLarge, ModelUnusable
from combee_core.reflect import reflect
from combee_core.testing import ScriptedModel


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
