"""Every key of a run configuration: it reaches the run, the deployment and its form, and a wrong value is named."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from asking import memory
from run_records import items

from combee_core.base import Noun
from combee_core.cli import options, run_files, settings
from combee_core.config import Nights, RunRequest
from combee_core.errors import UsageError
from combee_core.explained import explain
from combee_core.run_file import Path as Key
from combee_core.run_file import RunFile, keys, read_run_file, shown
from combee_core.runs import find_or_plan
from flows.backfill import backfill
from flows.measuring import profile
from flows.nightly import nightly
from tasks import serving

VALUES: dict[str, Any] = {
    "playbook": "desk",
    "store": "s3://bucket/prefix",
    "again": True,
    "source.uris": ["s3://bucket/traces"],
    "source.day": date(2026, 11, 30),
    "source.timezone": "Europe/Berlin",
    "source.kind": "samples",
    "source.limit": 7,
    "source.ground_truth": False,
    "source.fields": {"id": "run.id"},
    "source.scorer": "number",
    "settings.learner": "other",
    "settings.prompts": "/prompts",
    "settings.batch_size": 7,
    "settings.copies": 3,
    "settings.shuffle": "spread",
    "settings.seed": 7,
    "settings.grouping": "bounded",
    "settings.max_group": 7,
    "settings.merge": "cluster",
    "settings.levels": 3,
    "settings.embedding": "openai/text-embedding-3-small",
    "settings.alike": 0.5,
    "settings.max_failed": 0.5,
    "settings.shard_size": 7,
    "settings.dask": "tcp://127.0.0.1:1",
    "settings.on_budget": "publish",
    "settings.model.model": "openai/gpt-4o",
    "settings.model.api_base": "http://127.0.0.1:1/v1",
    "settings.model.temperature": 0.5,
    "settings.model.max_output_tokens": 7,
    "settings.model.context_tokens": 7,
    "settings.model.use_reasoning": True,
    "settings.model.timeout": 7.0,
    "settings.model.concurrency": 7,
    "settings.model.max_concurrency": 7,
    "settings.model.rpm": 7,
    "settings.model.tpm": 7,
    "settings.model.processes": 7,
    "settings.model.hedge": 7.0,
    "settings.model.retries": 7,
    "settings.model.retry_delay": 7.0,
    "settings.model.breaker": 7,
    "settings.model.fallbacks": ["curate=simulated/overload"],
    "settings.model.price": [1.0, 2.0],
    "settings.model.max_waits": 7,
    "settings.model.wait_budget": 7.0,
    "settings.sizes.candidates": [3, 7],
    "settings.sizes.tau": 0.5,
    "settings.sizes.peak": "difference",
    "settings.sizes.cap": 7,
    "settings.sizes.fallback": 7,
    "settings.sizes.drift": 7.0,
    "settings.sizes.anew": True,
    **{f"settings.alarms.{name}": 0.5 for name in ("learned", "survival", "cost")},
    "settings.alarms.silent": 7,
    **{f"settings.{of}.{name}": 7.5 for of in ("budget", "day_budget") for name in ("cost", "minutes")},
    **{f"settings.{of}.{name}": 7 for of in ("budget", "day_budget") for name in ("tokens", "calls")},
    "nights.lookback": 3,
    "nights.missed": "skip",
    "schedule.cron": "0 4 * * 1-5",
}
"""A value for each key that is not its default."""

NOUNS: dict[str, type[Noun]] = {"request": RunRequest, "nights": Nights}
"""What a flow is given, by the name of the parameter."""

EACH = pytest.mark.parametrize("name", VALUES)


def text_of(name: str, value: Any) -> str:
    """A file that says this and nothing else."""
    *table, key = name.split(".")
    head = f"[{'.'.join(table)}]\n" if table else ""
    return f"{head}{key} = {_toml(value)}\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(one)}' for key, one in value.items())}}}"
    return value.isoformat() if isinstance(value, date) else json.dumps(value)


def at(noun: Any, name: str) -> Any:
    """The value at a key, as plain data."""
    data = noun.model_dump(mode="json")
    for part in name.split("."):
        data = data[part]
    return data


def plain(name: str) -> Any:
    value = VALUES[name]
    return value.isoformat() if isinstance(value, date) else value


def test_there_is_a_value_for_every_key_and_none_is_the_default() -> None:
    assert set(VALUES) == {one.name for one in explain(RunFile())}
    assert not [name for name in VALUES if at(RunFile(), name) == plain(name)]


@EACH
def test_what_a_file_says_is_what_is_explained_and_what_the_commands_run(name: str, tmp_path: Path) -> None:
    path = tmp_path / "night.toml"
    path.write_text(text_of(name, VALUES[name]))
    file = read_run_file(path.read_text(), "night.toml")
    assert [(one.name, one.value) for one in explain(file) if one.given] == [(name, plain(name))]

    parser = argparse.ArgumentParser()
    run_files.add_config(parser)
    options.add_run(parser)
    args = parser.parse_args(["--config", str(path)])
    assert settings.request_of(args) == file.request
    assert settings.nights_of(args) == file.nights
    assert settings.schedule_of(args, file.schedule) == file.schedule


@pytest.mark.parametrize("name", [name for name in VALUES if not name.startswith(("nights", "schedule"))])
def test_it_is_in_the_plan_of_the_run_and_where_it_is_no_part_of_that_in_the_settings_of_each_attempt(
    name: str,
) -> None:
    request, store = read_run_file(text_of(name, VALUES[name]), "x").request, memory()
    run = find_or_plan(store, request, items(3), (), 0)
    assert at(run.plan().request, name) == plain(name)
    if not name.startswith("settings."):
        return
    key, own = name.removeprefix("settings."), read_run_file("", "x").request
    earlier = find_or_plan(store, own, items(3), (), 0)
    earlier.adopt(request.settings)
    follows = earlier.key == run.key
    assert at(earlier.settings(), key) == (plain(name) if follows else at(own.settings, key))


@EACH
def test_a_deployments_run_is_given_it(name: str) -> None:
    file = read_run_file(text_of(name, VALUES[name]), "x")
    if name == "schedule.cron":
        (schedule,) = serving.deployment(nightly, file, "", scheduled=True).schedules or ()
        assert getattr(schedule.schedule, "cron", None) == VALUES[name]
        return
    table, _, key = name.partition(".") if name.startswith("nights") else ("request", "", name)
    for flow in (nightly,) if table == "nights" else (nightly, backfill, profile):
        given = NOUNS[table].model_validate(serving.parameters(flow, file)[table])
        asked = (flow, name) != (backfill, "source.day")
        assert at(given, key) == (plain(name) if asked else None), "a backfill has days of its own"


@EACH
def test_a_value_of_a_wrong_kind_is_named_with_file_and_key(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_run_file(text_of(name, 3 if isinstance(VALUES[name], dict) else {"zzz": 1}), "night.toml")
    (said,) = str(refused.value).splitlines()
    place = shown(tuple(name.split(".")))
    assert said.startswith(f"night.toml: {place}: ")
    assert len(said) > len(f"night.toml: {place}: ") + 10


@pytest.mark.parametrize("table", sorted({path[:-1] for path in keys()}))
def test_an_unknown_key_of_any_table_is_named_with_those_that_there_are(table: Key) -> None:
    with pytest.raises(UsageError) as refused:
        read_run_file(text_of(".".join((*table, "qqqqqqq")), 1), "night.toml")
    beside = sorted(path[-1] for path in keys() if path[:-1] == table)
    assert str(refused.value) == (
        f"night.toml: {shown((*table, 'qqqqqqq'))}: there is no such key; the keys here are {', '.join(beside)}"
    )
