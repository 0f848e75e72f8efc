"""The litellm adapter's life: loaded late, cancelled, closed, used again."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from fake_provider import FakeProvider, answer, hang
from litellm_calls import EMPTY, MARKS, REQUEST, complete, openai, run

pytestmark = MARKS


def test_cancelling_passes_through() -> None:
    with FakeProvider([hang()]) as provider:
        model = openai(provider)

        async def cancelled() -> None:
            task = asyncio.create_task(model.complete(REQUEST))
            while not provider.calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(model, cancelled)


def test_a_closed_model_can_be_used_again_in_another_loop() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        model = openai(provider)
        assert [complete(model).text, complete(model).text] == [EMPTY, EMPTY]


def test_closing_leaves_no_task_and_a_model_that_still_works() -> None:
    with FakeProvider([answer(EMPTY)]) as provider:
        model = openai(provider)

        async def twice() -> None:
            for _ in range(2):
                assert (await model.complete(REQUEST)).text == EMPTY
                await model.aclose()
                assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(twice())


def test_nothing_is_printed_and_no_litellm_is_loaded_before_the_first_call() -> None:
    script = (
        "import asyncio, sys\n"
        "from combee_core.adapters.litellm_model import LitellmModel\n"
        "from combee_core.errors import ModelUnusable\n"
        "model = LitellmModel('gpt4o-typo')\n"
        "asyncio.run(model.aclose())\n"
        "assert 'litellm' not in sys.modules\n"
        "try: asyncio.run(model.preflight())\n"
        "except ModelUnusable: sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, ""), done.stderr


def test_without_litellm_the_error_says_what_to_install() -> None:
    script = (
        "import asyncio, sys\n"
        "sys.modules['litellm'] = None\n"
        "from combee_core.adapters.litellm_model import LitellmModel\n"
        "from combee_core.errors import ModelUnusable\n"
        "try: asyncio.run(LitellmModel('openai/gpt-4o').preflight())\n"
        "except ModelUnusable as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'combee-pipeline[llm]'" in done.stdout
