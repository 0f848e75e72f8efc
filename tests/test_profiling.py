"""The profiling sub-flow: real iterations, measured, kept as learning, and not repeated while the curve holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.sorting import ArtifactSort

from combee_core import measured
from combee_core.adapters.stores import open_store
from combee_core.config import RunRequest, RunSettings, SizeSettings, Source
from combee_core.records import RunResult, Sizing
from combee_core.runs import Run
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.epoch import epoch

pytestmark = pytest.mark.usefixtures("prefect_api")

DAY = date(2026, 3, 2)
TRACES = 36
PROFILE = (5, 10)
DRIFT = 5.0
"""The stand-in's delays scatter much: a curve through two of them is not meant to hold for the third."""

Make = Callable[..., RunRequest]


def requests(folder: Path) -> Make:
    """Requests on `n` runs of one source, with the controller's settings."""

    def make(n: int = TRACES, seed: int = 0, **settings: Any) -> RunRequest:
        source = folder / "traces"
        source.mkdir(exist_ok=True)
        (source / "day.jsonl").write_bytes(day_jsonl(World(0), n, seed, DAY))
        return RunRequest(
            playbook="p",
            store=f"file://{folder}/store",
            source=Source(uris=(str(source),)),
            settings=RunSettings(sizes=SizeSettings(drift=DRIFT), **settings),
        )

    return make


@pytest.fixture
def request_of(tmp_path: Path) -> Make:
    """Requests on an empty store."""
    return requests(tmp_path)


@pytest.fixture(scope="module")
def measured_once(tmp_path_factory: pytest.TempPathFactory, prefect_api: str) -> tuple[Path, RunResult]:
    """A folder in which a first run has measured, and that run's result."""
    folder = tmp_path_factory.mktemp("measured")
    return folder, epoch(requests(folder)())


@pytest.fixture
def after_it(measured_once: tuple[Path, RunResult], tmp_path: Path) -> tuple[Make, RunResult]:
    """Requests on a copy of that store, and the first run's result. The traces' folder is the same: so is the curve."""
    folder, first = measured_once
    shutil.copytree(folder / "store", tmp_path / "store")

    def make(**how: Any) -> RunRequest:
        return requests(folder)(**how).model_copy(update={"store": f"file://{tmp_path}/store"})

    return make, first


def run_of(request: RunRequest, result: RunResult) -> Run:
    return Run(open_store(request.store), result.run)


def sizing_of(result: RunResult) -> Sizing:
    assert result.sizing is not None
    return result.sizing


def test_the_candidates_are_learned_from_and_the_rest_follows_in_the_chosen_size(
    after_it: tuple[Make, RunResult],
) -> None:
    make, result = after_it
    sizing = sizing_of(result)
    assert (sizing.profile, sizing.total) == (PROFILE, TRACES)
    assert sizing.batch_size is not None
    assert result.accounting.learned == TRACES
    assert result.model_calls["reflect"] == TRACES, "measuring repeats no reflection"
    run = run_of(make(), result)
    batches = [run.batch(number) for number in range(1, sizing.count + 1)]
    sizes = [len(batch.trajectories) for batch in batches if batch]
    assert tuple(sizes[:2]) == PROFILE
    assert sum(sizes) == TRACES
    decision = run.decision()
    assert decision is not None
    assert (decision.batch_size, decision.reason) == (sizing.batch_size, sizing.reason)
    assert decision.fit is not None
    observed = [one for one in run.observations(range(1, 3)) if one]
    assert tuple(one.batch_size for one in observed) == PROFILE
    assert all(one.delay for one in observed), "the stand-in's delays come from its records"


def test_the_next_day_takes_the_curve_and_measures_nothing(after_it: tuple[Make, RunResult]) -> None:
    make, first = after_it
    second = epoch(make(seed=1))
    assert sizing_of(second).profile == ()
    assert f"measured in run {first.run}" in sizing_of(second).reason
    known = list(measured.all_known(open_store(make().store)))
    assert [one.run for one in known] == [first.run]


def test_a_curve_that_the_delays_have_left_is_measured_again(after_it: tuple[Make, RunResult]) -> None:
    make, _ = after_it
    store = open_store(make().store)
    (known,) = measured.all_known(store)
    measured.note_drift(store, known.subject, measured.Drift(run="x", deviation=9.0), DRIFT)
    again = epoch(make(seed=1))
    assert sizing_of(again).profile == PROFILE
    (renewed,) = measured.all_known(store)
    assert (renewed.run, renewed.stale) == (again.run, False)


def test_answers_from_the_store_are_no_measurement(after_it: tuple[Make, RunResult]) -> None:
    make, first = after_it
    store = open_store(make().store)
    for key in (*store.list("measurements/"), *store.list("playbooks/")):
        store.delete(key)
    again = epoch(make().model_copy(update={"playbook": "q"}))
    assert again.run != first.run
    profile = run_of(make(), again).observations(range(1, 3))
    assert [one.delay for one in profile if one] == [None] * 2, "the same prompts were answered before"
    assert sizing_of(again).batch_size == TRACES, "40 without a measurement, and no more than there are"
    assert not list(measured.all_known(store))


def test_the_fit_is_shown_as_a_table_and_as_a_picture(measured_once: tuple[Path, RunResult]) -> None:
    with get_client(sync_client=True) as client:
        for key, kind in (("batch-size", "table"), ("batch-size-curve", "markdown")):
            wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
            found = client.read_artifacts(artifact_filter=wanted, sort=ArtifactSort.CREATED_DESC, limit=1)
            assert [one.type for one in found] == [kind]
            assert found[0].data


def test_a_day_too_small_to_measure_is_one_batch_and_says_why(request_of: Make) -> None:
    result = epoch(request_of(12))
    sizing = sizing_of(result)
    assert (sizing.profile, sizing.batch_size, len(result.groups)) == ((), 12, 1)
    assert "30" in sizing.reason


def test_a_given_size_is_taken(request_of: Make) -> None:
    sizing = sizing_of(epoch(request_of(40, batch_size=20)))
    assert (sizing.profile, sizing.batch_size, sizing.count) == ((), 20, 2)
