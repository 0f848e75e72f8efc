"""What earlier runs say about the next one: means over their records, and nothing where there are none."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from builders import ACE
from inline_nights import asked, learn, write_day
from run_records import receipt

from combee_core.adapters.stores import open_store
from combee_core.base import estimate
from combee_core.calls import Usage
from combee_core.config import SIMULATED, RunSettings
from combee_core.experience import ASSUMED, Experience
from combee_core.observed import STATES, observed
from combee_core.pace import MEDIANS
from combee_core.prompt_sizes import PromptSizes
from combee_core.records import State, TraceFate

SIZES = PromptSizes(ACE, estimate)


def store() -> str:
    return f"memory://{uuid.uuid4().hex}"


def seen(uri: str, playbook: str = "p", model: str = SIMULATED) -> Experience:
    return observed(open_store(uri), playbook, model, SIZES, ASSUMED)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a night of sixty traces in three batches."""
    uri = store()
    learn(asked(uri, write_day(tmp_path_factory.mktemp("day"), 60), batch_size=20))
    return uri


def test_an_empty_store_leaves_every_assumption() -> None:
    assert seen(store()) == ASSUMED


@pytest.mark.parametrize("other", [{"playbook": "q"}, {"model": "openai/gpt-4o"}])
def test_runs_of_another_playbook_or_model_say_nothing(learned: str, other: dict[str, Any]) -> None:
    assert seen(learned, **other) == ASSUMED


def test_a_run_that_has_not_published_says_nothing(tmp_path: Path) -> None:
    uri = store()
    learn(asked(uri, write_day(tmp_path, 40), batch_size=20), batches=1)
    assert seen(uri) == ASSUMED


def test_a_night_of_failures_shows_its_figures(learned: str) -> None:
    found = seen(learned)
    assert len(found.runs) == 1
    assert {"share", "trace", "reflection", "entry", "operation", "merges", "growth", "pace"} <= set(found.observed)
    assert found.share == 1.0
    assert 80 < found.trace < 120
    assert 60 < found.reflection < 110
    assert 40 < found.entry < 60
    assert 35 < found.operation < 65
    assert 0 < found.merges < 0.3
    assert 0.5 < found.pace < 2


def test_what_was_not_seen_stays_assumed(learned: str) -> None:
    found = seen(learned)
    assert "rollout" not in found.observed
    assert (found.rollout, found.cached) == (ASSUMED.rollout, ASSUMED.cached)


def test_the_growth_that_was_seen_makes_the_playbook_that_was_seen(learned: str) -> None:
    found, kept = seen(learned), open_store(learned)
    (run,) = found.runs
    last = kept.read(f"runs/{run}/state-0003.json")
    assert last is not None
    state = ACE.load(State.model_validate_json(last.data).state)
    assert found.grown(0, 60) == pytest.approx(SIZES.bullets(state), rel=0.01)


def test_only_the_last_batches_of_a_long_run_are_read(tmp_path: Path) -> None:
    uri = store()
    night = learn(asked(uri, write_day(tmp_path, STATES + 5), batch_size=1))
    whole = seen(uri)
    for number in range(1, 5):
        night.store.delete(night.run.path(f"state-{number:04d}.json"))
    assert night.run.done == 0, "or the test says nothing"
    night.store.create(night.run.path("state-0001.json"), b"{")
    assert whole.share == 1.0


def test_a_second_run_counts_too_and_only_the_last_ones(learned: str, tmp_path: Path) -> None:
    uri = store()
    runs = [learn(asked(uri, write_day(tmp_path, 8, seed=n), batch_size=8)).run.key for n in range(4)]
    assert seen(uri).runs == tuple(reversed(runs[1:]))


def recorded(uri: str, tmp_path: Path, *receipts: Any, fates: str = "", **state: Any) -> Experience:
    """What a run says whose only batch has these records."""
    night = learn(asked(uri, write_day(tmp_path, 8), batch_size=8))
    found = night.run.state(1)
    assert found is not None
    its = tuple(TraceFate(trace_id=f"t{n}", fate=fate) for n, fate in enumerate(fates.split()))  # type: ignore[arg-type]
    changed = found.model_copy(update={"receipts": receipts, "fates": its, **state})
    key = night.run.path("state-0001.json")
    blob = night.store.read(key)
    assert night.store.replace(key, changed.model_dump_json().encode(), blob.tag if blob else None)
    return seen(uri)


def test_traces_that_taught_nothing_lower_the_share(tmp_path: Path) -> None:
    found = recorded(store(), tmp_path, receipt(), fates="learned learned learned nothing refused failed")
    assert found.share == 0.75


def test_usage_that_nobody_reported_is_no_figure(tmp_path: Path) -> None:
    silent = receipt(usage=Usage())
    found = recorded(store(), tmp_path, silent, receipt(usage=Usage(input_tokens=900, output_tokens=80)))
    assert found.reflection == 80
    alone = recorded(store(), tmp_path / "other", silent)
    assert "reflection" not in alone.observed


def test_rejected_answers_do_not_count_as_calls(tmp_path: Path) -> None:
    rejected = receipt(accepted=False, usage=Usage(input_tokens=900, output_tokens=8000))
    found = recorded(store(), tmp_path, rejected, receipt(usage=Usage(input_tokens=900, output_tokens=80)))
    assert found.reflection == 80


def test_what_the_provider_cached_is_a_share_of_the_input(tmp_path: Path) -> None:
    usage = Usage(input_tokens=1000, output_tokens=80, cached_tokens=600)
    assert recorded(store(), tmp_path, receipt(usage=usage)).cached == 0.6


def test_rollouts_are_observed_where_there_were_any(tmp_path: Path) -> None:
    solved = receipt(stage="rollout", usage=Usage(input_tokens=500, output_tokens=44))
    assert recorded(store(), tmp_path, solved).rollout == 44


def test_a_paper_merge_says_nothing_about_clusters(tmp_path: Path) -> None:
    uri = store()
    learn(asked(uri, write_day(tmp_path, 20), batch_size=20, merge="paper"))
    assert "merges" not in seen(uri).observed


def test_every_stage_has_a_delay() -> None:
    assert set(MEDIANS) == set(SIZES.fixed)
    assert RunSettings().learner == ACE.name
