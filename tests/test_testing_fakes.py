"""The public fakes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from asking import prompt, run

from combee_core.calls import Completion, Request, Usage
from combee_core.errors import ModelBusy, ModelFault, ModelRefused
from combee_core.testing import FlakyModel, ScriptedModel


def asked(item: str = "t1") -> Request:
    return Request(prompt=prompt(item), max_output_tokens=10)


def test_a_list_is_answered_in_its_order() -> None:
    model = ScriptedModel([{"n": 1}, "two"])
    assert json.loads(run(model.complete(asked())).text or "") == {"n": 1}
    assert run(model.complete(asked())).text == "two"


def test_an_answer_has_a_usage_a_finish_and_the_models_name() -> None:
    completion = run(ScriptedModel(["x"], name="some/name").complete(asked()))
    assert completion.model == "some/name"
    assert completion.finish == "stop"
    assert completion.usage == Usage(input_tokens=10, output_tokens=5, cost=0.0)


def test_past_the_end_of_a_list_it_fails_and_says_so() -> None:
    model = ScriptedModel([])
    with pytest.raises(ModelFault, match="0 answers, this is call 1"):
        run(model.complete(asked()))


def test_a_function_sees_the_request() -> None:
    model = ScriptedModel(lambda request: {"item": request.prompt.item})
    assert json.loads(run(model.complete(asked("t9"))).text or "") == {"item": "t9"}
    assert model.items == ["t9"]


def test_a_coroutine_function_is_awaited_and_counted_in_flight() -> None:
    async def both() -> None:
        gate = asyncio.Event()

        async def slow(_: Request) -> str:
            if model.in_flight == 2:
                gate.set()
            await gate.wait()
            return "done"

        model = ScriptedModel(slow)
        await asyncio.gather(model.complete(asked("a")), model.complete(asked("b")))
        assert (model.in_flight, model.most) == (0, 2)

    run(both())


def test_an_error_in_the_script_is_raised_and_ends_the_flight() -> None:
    model = ScriptedModel([ModelRefused("no")])
    with pytest.raises(ModelRefused, match="no"):
        run(model.complete(asked()))
    assert model.in_flight == 0
    assert len(model.requests) == 1


def test_a_completion_is_passed_on_with_the_name_filled_in() -> None:
    model = ScriptedModel([Completion(text=None, finish="length"), Completion(text="x", model="dated-name")])
    first, second = run(model.complete(asked())), run(model.complete(asked()))
    assert (first.finish, first.model) == ("length", "scripted/model")
    assert first.usage.cost is None
    assert second.model == "dated-name"


def test_a_context_limit_is_passed_on() -> None:
    model = ScriptedModel([], context_tokens=100)
    assert model.context_tokens == 100
    assert FlakyModel(model, {}).context_tokens == 100


def test_a_flaky_model_fails_on_the_calls_it_is_told() -> None:
    inner = ScriptedModel(["first", "second"])
    model = FlakyModel(inner, {2: ModelBusy("later", 7.0)})
    assert run(model.complete(asked())).text == "first"
    with pytest.raises(ModelBusy) as busy:
        run(model.complete(asked()))
    assert busy.value.retry_after == 7.0
    assert run(model.complete(asked())).text == "second"
    assert (model.calls, len(inner.requests)) == (3, 2)


def test_a_flaky_model_may_choose_its_fault_by_the_request() -> None:
    def faults(number: int, request: Request) -> Exception | None:
        return ModelRefused(f"call {number}") if request.prompt.item == "bad" else None

    model = FlakyModel(ScriptedModel(lambda _: "fine"), faults)
    assert run(model.complete(asked("good"))).text == "fine"
    with pytest.raises(ModelRefused, match="call 2"):
        run(model.complete(asked("bad")))


def test_a_flaky_model_has_the_name_of_the_other() -> None:
    assert FlakyModel(ScriptedModel([], name="inner"), {}).name == "inner"


def test_the_fakes_need_nothing_but_the_core() -> None:
    heavy = "'prefect', 'litellm', 's3fs', 'numpy', 'httpx'"
    code = f"import sys, combee_core.testing; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
