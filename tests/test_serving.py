"""Deployments as they are registered: names, schedule, limit, values; none of it needs a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from combee_core.cli import main, serve
from combee_core.config import Nights, RunRequest, Source
from combee_core.run_file import RunFile, Schedule
from flows.serving import SCHEDULED, SERVED, deployments
from tasks import sizing

FILE = RunFile(
    playbook="support",
    store="file:///store",
    source=Source(uris=("/traces",), timezone="Europe/Berlin"),
    nights=Nights(lookback=2),
    schedule=Schedule(cron="0 4 * * *"),
)


def made(file: RunFile = FILE, label: str = "") -> dict[str, Any]:
    return {one.name: one for one in deployments(file, label)}


def test_every_flow_is_served_under_its_own_name() -> None:
    assert set(made()) == {flow.name for flow in SERVED}
    assert {"nightly", "backfill", "profile"} <= set(made())
    assert [one.full_name for one in deployments(FILE, "eu")] == [f"{flow.name}/{flow.name}-eu" for flow in SERVED]


def test_one_run_at_a_time_and_none_waits() -> None:
    for one in made().values():
        assert one.concurrency_limit == 1
        assert one.concurrency_options.collision_strategy == "CANCEL_NEW"


def test_the_night_has_the_schedule_and_the_zone_of_its_file_and_nothing_else_has_one() -> None:
    schedules = {name: one.schedules for name, one in made().items()}
    (night,) = schedules.pop("nightly")
    assert (night.schedule.cron, night.schedule.timezone, night.active) == ("0 4 * * *", "Europe/Berlin", True)
    assert not any(schedules.values())
    assert made()["nightly"].parameters["nights"] == {"lookback": 2, "missed": "run"}
    assert {flow.name for flow in SCHEDULED} == {"nightly"}


def test_by_default_a_night_starts_at_half_past_three() -> None:
    (night,) = made(RunFile(source=Source(uris=("/traces",))))["nightly"].schedules
    assert (night.schedule.cron, night.schedule.timezone) == ("30 3 * * *", "UTC")


def test_a_night_with_nothing_to_learn_from_does_not_start_by_itself() -> None:
    (night,) = made(RunFile())["nightly"].schedules
    assert not night.active


def test_the_forms_are_filled_with_the_values_of_the_file() -> None:
    for one in made().values():
        assert RunRequest.model_validate(one.parameters["request"]) == FILE.request
        assert one.description
        assert one.tags == ["combee", "support"]


def test_a_measurement_asked_for_is_a_new_run_that_measures_whatever_is_known() -> None:
    given = RunRequest(source=Source(uris=("/traces",)))
    asked = sizing.anew(given.model_copy(update={"settings": given.settings.model_copy(update={"batch_size": 7})}))
    assert (asked.again, asked.settings.batch_size, asked.settings.sizes.anew) == (True, "auto", True)
    assert asked.source == given.source


# what is wrong is said before a server is started


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two configurations, of the playbooks `a` and `b`."""
    paths = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for path in paths:
        path.write_text(f'playbook = "{path.stem}"\n')
    return paths


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--cron", "3 30"), "--cron '3 30': a cron schedule has five fields"),
        (("--cron", "99 3 * * *"), "--cron '99 3 * * *': 99 in a cron schedule"),
        (("--timezone", "Mars/Base"), "unknown time zone 'Mars/Base'"),
        (("--traces", "no/such/folder"), "no/such/folder: no such file or folder"),
        (("--config", "none.toml"), "none.toml: No such file"),
    ],
)
def test_wrong_use_is_named(
    args: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *args]) == 2
    assert said in capsys.readouterr().err


def test_two_files_of_one_playbook_are_wrong_use(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[1].write_text('playbook = "a"')
    assert main(["serve", "--config", *map(str, files)]) == 2
    assert "two of these files are for the playbook a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "name", "labels"),
    [(1, None, [""]), (1, "eu", ["eu"]), (2, None, ["a", "b"]), (2, "eu", ["eu-a", "eu-b"])],
)
def test_several_playbooks_are_told_apart_by_name(
    count: int, name: str | None, labels: list[str], files: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    args = parse("--config", *files[:count], *(("--name", name) if name else ()))
    assert [label for _, label in serve.playbooks(args)] == labels


def test_options_count_more_than_each_file(files: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    args = parse(
        "--config", *files, "--cron", "0 5 * * *", "--timezone", "Asia/Tokyo", "--batch-size", 7, "--lookback", 1
    )
    for file, label in serve.playbooks(args):
        assert (file.playbook, file.schedule.cron, file.source.timezone) == (label, "0 5 * * *", "Asia/Tokyo")
        assert (file.settings.batch_size, file.nights) == (7, Nights(lookback=1))
        assert file.store == f"file://{tmp_path}/combee-store"


def parse(*args: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    serve.add(parser.add_subparsers())
    return parser.parse_args(["serve", *map(str, args)])
