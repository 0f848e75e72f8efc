"""The key under which an answer is saved: all that may change the answer, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from asking import client, prompt
from builders import ACE
from children import fresh_interpreter
from lessons import trajectory

from combee_core.client import Client
from combee_core.testing import ScriptedModel


def keys(**settings: Any) -> str:
    return client(ScriptedModel([]), **settings).key(prompt())


@pytest.mark.parametrize(
    "changed",
    [
        {"api_base": "http://127.0.0.1:1/v1"},
        {"temperature": 0.5},
        {"max_output_tokens": 17},
        {"context_tokens": 1000},
        {"use_reasoning": True},
        {"version": "v2"},
    ],
)
def test_whatever_can_change_an_answer_changes_its_key(changed: dict[str, Any]) -> None:
    assert keys(**changed) != keys()


@pytest.mark.parametrize(
    "same", [{"concurrency": 3}, {"timeout": 1.0}, {"retries": 9}, {"max_waits": 0}, {"wait_budget": 1.0}]
)
def test_how_patiently_one_asks_is_not_in_the_key(same: dict[str, Any]) -> None:
    assert keys(**same) == keys()


def test_the_key_holds_prompt_schema_item_stage_model_and_seed() -> None:
    asking = client(ScriptedModel([]))
    original = prompt()
    others = [
        prompt(text="another text"),
        prompt(item="t2"),
        prompt(stage="curate"),
        original.model_copy(update={"answer_schema": {"type": "array"}}),
    ]
    assert len({asking.key(p) for p in (original, *others)}) == 5
    named = client(ScriptedModel([], name="served/elsewhere"))
    seeded = Client(asking.model, asking.answers, asking.settings, "v1", seed=1)
    assert len({c.key(original) for c in (asking, named, seeded)}) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"task": "Another question?"},
        {"steps": ()},
        {"policy": "be brief"},
        {"cited": ("misc-00001",)},
        {"trace_id": "t99"},
        {"outcome": trajectory(1).outcome.model_copy(update={"feedback": "expected 3"})},
    ],
)
def test_what_a_model_may_see_of_a_trace_changes_the_key(changed: dict[str, Any]) -> None:
    asking = client(ScriptedModel([]))
    questions = [ACE.reflect(ACE.empty(), trajectory(1)), ACE.reflect(ACE.empty(), trajectory(1, **changed))]
    assert len({asking.key(q.prompt) for q in questions}) == 2


def test_where_a_trace_was_found_is_not_in_the_key() -> None:
    asking = client(ScriptedModel([]))
    moved = trajectory(1, source="elsewhere.json", metadata={"user": "ada"})
    assert asking.key(ACE.reflect(ACE.empty(), trajectory(1)).prompt) == asking.key(
        ACE.reflect(ACE.empty(), moved).prompt
    )


def test_two_fresh_processes_have_the_same_keys() -> None:
    code = (
        "from asking import client, prompt\n"
        "from builders import ACE, EMPTY\n"
        "from lessons import group\n"
        "from run_records import items, request\n"
        "from combee_core.testing import ScriptedModel\n"
        "from combee_core.runs import run_key\n"
        "c = client(ScriptedModel([]), temperature=0.1)\n"
        "q = ACE.curate(EMPTY, group(1, 2, 3)).prompt\n"
        "print(c.key(q), c.key(prompt()), run_key(request(), items(3), 0), ACE.fingerprint)\n"
    )
    printed = {fresh_interpreter(code, seed) for seed in (1, 2)}
    assert len(printed) == 1
    assert len(printed.pop().split()) == 4
