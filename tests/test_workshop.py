"""What is built once a process, and under which name."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from simserver import ROOT, simulated_server

from combee_core.adapters.models import build_model
from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, Workshop, calls, client_for, open_workshop, stop_calls
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import ModelRefused, RunStopped, StoreError
from combee_core.ledger import Ledger
from combee_core.records import Batch, Item
from combee_core.reflect import reflect
from combee_core.runs import find_or_plan
from combee_core.simulation.day import day
from combee_core.simulation.world import World
from combee_core.types import Reflected, Trajectory


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_server_from_the_environment_is_part_of_the_models_name(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    plain = build_model(ModelSettings(model="openai/x")).name
    monkeypatch.setenv(variable, "http://127.0.0.1:1/v1")
    assert plain == "openai/x"
    assert build_model(ModelSettings(model="openai/x")).name == "openai/x@http://127.0.0.1:1/v1"
    assert build_model(ModelSettings(model="anthropic/x")).name == "anthropic/x"
    given = ModelSettings(model="openai/x", api_base="http://127.0.0.1:2/v1")
    assert build_model(given).name == "openai/x@http://127.0.0.1:2/v1"


def test_the_stand_in_answers_in_process() -> None:
    assert build_model(ModelSettings(model="simulated/overload")).name == "simulated/overload"


def test_there_is_one_client_for_a_store_and_settings() -> None:
    assert client_for("memory://a", RunSettings()) is client_for("memory://a", RunSettings())
    assert client_for("memory://a", RunSettings()) is not client_for("memory://b", RunSettings())
    assert client_for("memory://a", RunSettings()) is not client_for("memory://a", RunSettings(seed=1))


def planned(tmp_path: Path, settings: RunSettings) -> Place:
    """A planned run with its first batch recorded."""
    runs = day(World(0), 4, 0)
    store = open_store(f"file://{tmp_path}/store")
    request = RunRequest(store=store.uri, source=Source(day=date(2026, 3, 2)), settings=settings)
    run = find_or_plan(store, request, [Item(id=r.trace_id, digest=r.digest) for r in runs], (), 0)
    run.start_batch(Batch(number=1, trajectories=runs))
    return Place(store=store.uri, run=run.key, number=1)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A planned run with the settings that nobody has changed."""
    return planned(tmp_path, RunSettings())


def test_a_workshop_knows_its_run(place: Place) -> None:
    shop = open_workshop(place)
    assert len(shop.batch(1).trajectories) == 4
    assert shop.state_before(1) == shop.learner.empty()
    with pytest.raises(StoreError, match="has not recorded batch 2"):
        shop.batch(2)
    with pytest.raises(StoreError, match="no state after batch 1"):
        shop.state_before(2)
    with pytest.raises(StoreError, match="has no run"):
        open_workshop(Place(store=place.store, run="nobody"))


def test_task_keys_differ_by_stage_and_item_and_are_the_same_every_time(place: Place) -> None:
    shop = open_workshop(place)
    keys = shop.task_keys("reflect", 1, ["a", "b"])
    assert keys == shop.task_keys("reflect", 1, ["a", "b"])
    assert len({*keys, *shop.task_keys("curate", 1, ["a", "b"])}) == 4
    assert all(key.startswith("reflect/") for key in keys)


def test_a_stopped_process_makes_no_new_call_until_a_run_begins_again(place: Place) -> None:
    shop = open_workshop(place)
    question = shop.learner.reflect(shop.state_before(1), shop.batch(1).trajectories[0])
    client = shop.client
    stop_calls("enough")
    with pytest.raises(RunStopped, match="enough"):
        calls(client.ask(question, shop.run.key))
    client.begin(shop.run.key)
    assert calls(client.ask(question, shop.run.key)).value.key_insight


def begun(place: Place, invocation: str) -> Workshop:
    return open_workshop(place.model_copy(update={"invocation": invocation}))


def work(shop: Workshop) -> list[Any]:
    """Reflect on the first batch, but for its second run, which is refused."""
    runs = shop.batch(1).trajectories

    async def ask(run: Trajectory) -> Reflected:
        if run is runs[1]:
            raise ModelRefused("not that one")
        return await reflect(run, shop.state_before(1), **shop.tools)

    return shop.work(runs, ask)


def test_a_shard_is_worked_on_together_and_errors_are_handed_back(place: Place) -> None:
    ended = work(open_workshop(place))
    assert [getattr(one, "fate", type(one).__name__) for one in ended] == [
        "insight", "ModelRefused", "insight", "insight",
    ]  # fmt: skip


def test_calls_are_counted_for_an_invocation_however_often_a_process_opens_the_workshop(place: Place) -> None:
    work(begun(place, "flow-1"))
    assert begun(place, "flow-1").client.ledger.calls(place.run)["reflect"] == 3
    again = begun(place.model_copy(update={"number": 7}), "flow-1")
    assert again.client.ledger.calls(place.run)["reflect"] == 3, "another batch is the same invocation"
    assert begun(place, "flow-2").client.ledger.calls(place.run)["reflect"] == 0
    assert begun(place, "flow-2").client is client_for(place.store, RunSettings())


def test_a_worker_writes_down_what_its_task_asked_before_the_task_ends(tmp_path: Path) -> None:
    place = planned(tmp_path, RunSettings(dask="tcp://127.0.0.1:8786"))
    work(begun(place, "flow-1"))
    elsewhere = Ledger(open_store(place.store))
    elsewhere.begin(place.run, "flow-1")
    assert elsewhere.calls(place.run)["reflect"] == 3


DASK = RunSettings(dask="tcp://127.0.0.1:8786")


def in_another_process(place: Place, code: str) -> None:
    """Run code there that finds `place` as its argument and the workshop's functions under their names."""
    imports = "import sys\nfrom combee_core.adapters.workshop import *\n"
    opened = "place = Place.model_validate_json(sys.argv[1])\nshop = open_workshop(place)\nshop.client\n"
    subprocess.run([sys.executable, "-c", imports + opened + code, place.model_dump_json()], check=True, cwd=ROOT)


def test_a_stop_in_one_process_reaches_the_others_of_its_invocation_before_their_next_shard(tmp_path: Path) -> None:
    place = planned(tmp_path, DASK)
    shop = begun(place, "flow-1")
    work(shop)
    in_another_process(place.model_copy(update={"invocation": "flow-1"}), "stop_calls('interrupted')")
    with pytest.raises(RunStopped, match="interrupted"):
        work(shop)
    question = shop.learner.reflect(shop.state_before(1), day(World(0), 5, 0)[4])
    with pytest.raises(RunStopped, match="interrupted"):
        calls(shop.client.ask(question, shop.run.key))
    assert work(begun(place, "flow-2")), "the next invocation is another one"


def test_a_run_in_threads_leaves_no_mark_and_reads_none(place: Place) -> None:
    begun(place, "flow-1").client.begin(place.run, "flow-1")
    stop_calls("interrupted")
    assert not [key for key in open_store(place.store).list(f"runs/{place.run}/") if "/stop-" in key]


def test_a_store_that_is_away_does_not_keep_a_process_from_stopping(tmp_path: Path) -> None:
    place = planned(tmp_path, DASK)
    shop = begun(place, "flow-1")
    work(shop)
    folder = tmp_path / "store"
    folder.rename(tmp_path / "moved")
    folder.write_text("no folder")
    stop_calls("interrupted")
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    question = shop.learner.reflect(shop.state_before(1), day(World(0), 5, 0)[4])
    with pytest.raises(RunStopped, match="interrupted"):
        calls(shop.client.ask(question, shop.run.key))


def test_a_worker_ends_and_books_what_lost_its_race_before_its_task_ends(tmp_path: Path) -> None:
    """Its process may live for days, and the flow's counts when the last task has ended."""
    with simulated_server(tmp_path) as server:
        model = ModelSettings(model="openai/simulated/overload", api_base=server.url, hedge=1)
        place = planned(tmp_path, DASK.model_copy(update={"model": model}))
        shop = begun(place, "flow-1")
        state = shop.state_before(1)
        runs = [*day(World(0), 12, 0)]
        shop.work(runs[:-1], lambda run: reflect(run, state, **shop.tools))
        server.set_faults("stage=reflect,kind=timeout,count=1")
        shop.work(runs[-1:], lambda run: reflect(run, state, **shop.tools))
    elsewhere = Ledger(open_store(place.store))
    elsewhere.begin(place.run, "flow-1")
    assert elsewhere.calls(place.run)["reflect"] == 13
    assert elsewhere.spend(place.run).calls == 13
    assert elsewhere.spend(place.run).cost_at_least


@pytest.mark.parametrize("model", ["simulated/overload", "openai/simulated/overload"])
def test_the_rules_of_the_simulated_world_are_known(tmp_path: Path, model: str) -> None:
    settings = RunSettings(model=ModelSettings(model=model, api_base="http://127.0.0.1:1/v1"))
    tell = open_workshop(planned(tmp_path, settings)).tell
    rules = [World(0).rule(number) for number in (0, 1)]
    assert tell is not None
    assert set(tell(f"{rules[0].wording(0)} And: {rules[1].wording(1)}")) == set(rules)
    assert tell(rules[0].wording(0)) == tell(rules[0].wording(2)), "in whichever words"
    assert not tell("Round last.")


def test_a_real_models_rules_are_not_known(tmp_path: Path) -> None:
    assert open_workshop(planned(tmp_path, RunSettings(model=ModelSettings(model="openai/gpt-4o")))).tell is None
