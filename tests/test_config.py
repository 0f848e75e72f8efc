"""Settings: bounds, identities, and what they promise."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from combee_core.config import SIMULATED, ModelSettings, RunRequest, RunSettings, SizeSettings, Source

ANSWER = {"model", "api_base", "temperature", "max_output_tokens", "context_tokens", "use_reasoning"}
PLACE_AND_PATIENCE = {"alarms", "model", "shard_size", "dask", "prompts", "budget", "day_budget", "on_budget"}


def test_the_offline_stand_in_is_the_default() -> None:
    assert ModelSettings().model == SIMULATED
    assert SIMULATED.startswith("simulated/")


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = RunSettings()
    assert (settings.batch_size, settings.copies, settings.shuffle, settings.seed) == ("auto", "auto", "paper", 0)
    assert settings.sizes == SizeSettings(candidates=(5, 10, 20, 40, 80), tau=0.016, peak="fit", fallback=40)
    assert (settings.grouping, settings.merge, settings.levels, settings.shard_size) == ("auto", "auto", 2, "auto")
    assert settings.max_failed == 0.05
    assert settings.model.concurrency == 32
    assert settings.model.timeout == 300.0


def test_only_what_can_change_an_answer_is_in_the_models_identity() -> None:
    assert set(ModelSettings().identity()) == ANSWER


def test_every_setting_of_a_run_but_place_and_patience_is_in_its_identity() -> None:
    assert set(RunSettings().identity()) == set(RunSettings.model_fields) - PLACE_AND_PATIENCE | {"model"}
    assert RunSettings().identity()["model"] == ModelSettings().identity()


@given(st.integers(0, 20), st.integers(0, 20))
def test_the_greatest_number_of_requests_is_the_product_and_twice_that_with_a_second_try_for_slow_calls(
    retries: int, waits: int
) -> None:
    once = ModelSettings(retries=retries, max_waits=waits, hedge=0)
    assert once.most_requests == (retries + 1) * (waits + 1)
    assert once.model_copy(update={"hedge": 4.0}).most_requests == 2 * once.most_requests


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"max_output_tokens": 0},
        {"timeout": 0},
        {"concurrency": 0},
        {"retries": -1},
        {"max_waits": -1},
        {"wait_budget": -1},
        {"retry_delay": -1},
        {"temprature": 0.5},
    ],
)
def test_a_model_setting_out_of_range_or_misspelt_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings(**bad)


@pytest.mark.parametrize(
    "bad",
    [{"batch_size": 0}, {"copies": 0}, {"shuffle": "random"}, {"max_failed": 1.1}, {"max_failed": -0.1}, {"batch": 3}],
)
def test_a_run_setting_out_of_range_or_misspelt_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunSettings(**bad)


@pytest.mark.parametrize("bad", [{"limit": 0}, {"kind": "videos"}, {"scorer": "taste"}, {"day": "yesterday"}])
def test_a_source_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Source(**bad)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "-x", ".x"])
def test_a_playbook_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        RunRequest(playbook=name)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        RunSettings().batch_size = 3  # type: ignore[misc]


def test_a_request_goes_through_json_unchanged() -> None:
    request = RunRequest(
        playbook="desk",
        source=Source(uris=("s3://a/b",), day=date(2026, 3, 8), timezone="America/New_York", fields={"answer": "out"}),
        settings=RunSettings(batch_size=7, model=ModelSettings(model="openai/gpt-4o", temperature=0.2)),
        again=True,
    )
    assert RunRequest.model_validate_json(request.model_dump_json()) == request


def test_every_option_that_needs_words_has_them() -> None:
    described = {"api_base", "max_output_tokens", "timeout", "concurrency", "retries", "max_waits", "wait_budget"}
    assert all(ModelSettings.model_fields[name].description for name in described)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:///a%20b/", "/a b"),
        ("file://./a", "./a"),
        ("s3://bucket/traces/", "s3://bucket/traces"),
        ("s3://bucket", "s3://bucket"),
        ("s3://", "s3://"),
        ("/", "/"),
        ("file:///", "/"),
        ("world:240", "world:240"),
    ],
)
def test_a_place_has_one_spelling_whatever_was_typed(typed: str, meant: str) -> None:
    assert Source(uris=(typed,)).uris == (meant,)


@pytest.mark.parametrize(
    ("source", "label"),
    [
        (Source(), "desk"),
        (Source(day=date(2026, 3, 2)), "desk-2026-03-02"),
        (Source(kind="backlog"), "desk-backlog"),
        (Source(kind="backlog", day=date(2026, 3, 2)), "desk-backlog"),
    ],
)
def test_a_flow_run_is_named_after_its_playbook_and_what_of_it_is_learned(source: Source, label: str) -> None:
    assert RunRequest(playbook="desk", source=source).label == label
