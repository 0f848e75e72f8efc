"""Stages mapped over a batch: what they read, and what a saved result depends on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fake_provider import FakeProvider, vectors_of
from prefect import flow

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.records import Batch, Item
from combee_core.runs import find_or_plan
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.types import Outcome, RolledOut, Sample
from flows.epoch import epoch
from tasks import mapped
from tasks.results import register

pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return open_store(f"file://{tmp_path}/store").uri


def planned(store: str, playbook: str, samples: Sequence[Sample] | None = None, **source: Any) -> Place:
    """A run whose first batch has these samples, or is not recorded where there are none."""
    items = [Item(id=sample.id, digest=sample.digest) for sample in samples or ()]
    request = RunRequest(playbook=playbook, store=store, source=Source(uris=("x",), **source), settings=RunSettings())
    run = find_or_plan(open_store(store), request, items, (), 0)
    if samples is not None:
        run.start_batch(Batch(number=1, samples=tuple(samples)))
    return Place(store=store, run=run.key, number=1)


@flow(persist_result=False)
def rolled(place: Place, results: str) -> list[RolledOut]:
    return mapped.rollout(place, results)


def rollouts(store: str, playbook: str, samples: Sequence[Sample], **source: Any) -> dict[str, Outcome]:
    made = rolled(planned(store, playbook, samples, kind="samples", **source), register(store))
    return {one.trajectory.trace_id: one.trajectory.outcome for one in made if one.trajectory}


def with_commas(store: str) -> list[Sample]:
    """Samples that expect what the stand-in answers, written so that only the scorer `number` can read it."""
    samples = World(0).sample(2, 0, "train")
    wrong = rollouts(store, "before", [sample.model_copy(update={"target": "none"}) for sample in samples])
    answers = [wrong[sample.id].feedback.split()[-1] for sample in samples]
    pairs = enumerate(zip(samples, answers, strict=True))
    return [Sample(id=f"s{n}", context=sample.context, target=f"{float(got):,}") for n, (sample, got) in pairs]


def test_for_traces_no_batch_is_read_to_find_that_there_are_no_samples(store: str) -> None:
    assert rolled(planned(store, "p"), register(store)) == []


def test_after_rollouts_the_batch_is_not_read_again(store: str) -> None:
    @flow(persist_result=False)
    def reflected(place: Place, results: str) -> list[Any]:
        return list(mapped.reflect(place, results, []))

    assert reflected(planned(store, "p", kind="samples"), register(store)) == []


def test_numpy_and_scipy_are_loaded_while_reflections_are_waited_for() -> None:
    script = (
        "import sys, threading\nfrom combee_core.adapters.workshop import Place\n"
        "from combee_core.errors import StoreError\nfrom tasks import mapped\nbefore = 'scipy.cluster' in sys.modules\n"
        "try:\n    mapped.reflect(Place(store='memory://none', run='none'), '', [])\nexcept StoreError:\n    pass\n"
        "[one.join() for one in threading.enumerate() if one.name == 'clustering']\n"
        "print(before, 'scipy.cluster' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_flow_asks_the_embedding_model_and_a_rerun_does_not(
    tmp_path: Path, no_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 12, 0, date(2026, 3, 2)))
    settings = RunSettings(
        batch_size=12, grouping="bounded", max_group=4, merge="cluster", embedding="openai/small", alike=0.9
    )
    source = Source(uris=(str(tmp_path / "day.jsonl"),))
    request = RunRequest(playbook="p", store=f"file://{tmp_path}/store", source=source, settings=settings)
    with FakeProvider(lambda asked: vectors_of(asked, lambda _: [1.0, 0.0])) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        first = epoch(request)
        asked = provider.calls
        second = epoch(request.model_copy(update={"playbook": "q"}))
        assert provider.calls == asked > 0
    assert (first.version, second.digest) == (1, first.digest)
    assert first.model_calls["merge"] > 0


def test_what_another_scorer_or_name_has_judged_is_not_taken_for_ones_own(store: str) -> None:
    """All of them start from the same empty playbook, so that the answers themselves are shared."""
    samples = with_commas(store)
    exact = rollouts(store, "exact", samples, scorer="exact")
    number = rollouts(store, "number", samples, scorer="number")
    assert [outcome.score for outcome in exact.values()] == [0.0, 0.0]
    assert [outcome.score for outcome in number.values()] == [1.0, 1.0]
    withheld = rollouts(store, "withheld", samples, scorer="number", ground_truth=False)
    assert {outcome.source for outcome in withheld.values()} == {"reward"}
    renamed = [sample.model_copy(update={"id": f"other-{sample.id}"}) for sample in samples]
    assert list(rollouts(store, "renamed", renamed, scorer="exact")) == ["other-s0", "other-s1"]
