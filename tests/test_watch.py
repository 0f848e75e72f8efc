"""What a run from a terminal sees of its server: that it is to be cancelled, that nobody is there any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling, Running

from combee_core.adapters.workshop import calls, close, wind_down
from combee_core.errors import RunStopped
from tasks.watch import watching

NOWHERE = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A process without calls, before and after."""
    close()
    yield
    close()


@flow
def idle() -> None:
    """Nothing."""


def test_a_cancelled_flow_run_is_noticed(prefect_api: str) -> None:
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(idle, state=Running())
        with watching(run.id, lost=pytest.fail, interval=0.02) as cancelled:
            assert not cancelled.wait(0.3)
            client.set_flow_run_state(run.id, Cancelling(), force=True)
            assert cancelled.wait(30)


def test_a_server_that_is_away_for_too_long_is_given_up() -> None:
    said, lost = list[str](), threading.Event()

    def note(message: str) -> None:
        said.append(message)
        lost.set()

    with temporary_settings({PREFECT_API_URL: NOWHERE}), watching(uuid4(), note, 0.01, 0.2) as cancelled:
        assert lost.wait(30)
    assert not cancelled.is_set()
    assert NOWHERE in said[0]


def test_it_is_waited_for_while_a_model_is_asked() -> None:
    lost = threading.Event()
    with temporary_settings({PREFECT_API_URL: NOWHERE}), watching(uuid4(), lambda _: lost.set(), 0.01, 0.1):
        calls(asyncio.sleep(1))
        assert not lost.is_set()
        assert lost.wait(30)


def test_calls_in_flight_have_a_bounded_time_to_end() -> None:
    calls(asyncio.sleep(0))
    wind_down("stopped", seconds=0.05)
    with pytest.raises(RunStopped):
        calls(asyncio.sleep(600))
    assert calls(asyncio.sleep(0, "a result")) == "a result", "the loop itself stays open"


def test_the_end_of_one_run_does_not_end_the_calls_of_the_next() -> None:
    calls(asyncio.sleep(0))
    wind_down("stopped", seconds=0.2)
    close()
    assert calls(asyncio.sleep(0.5, "a result")) == "a result"
