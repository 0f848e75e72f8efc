"""Options become a request: what is not said keeps its default, and every option changes something."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import pytest

from combee_core.cli import main, options, settings
from combee_core.config import Nights, RunRequest, RunSettings
from combee_core.errors import UsageError


def parse(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add_run(parser)
    return parser.parse_args(args)


def test_without_options_everything_has_the_defaults_of_the_settings() -> None:
    made = settings.request_of(parse())
    assert made.settings == RunSettings()
    assert made == RunRequest(store="file://./combee-store")


@pytest.mark.parametrize(
    "args",
    [
        ("--store", "memory://x"),
        ("--playbook", "other"),
        ("--model", "openai/x"),
        ("--api-base", "http://127.0.0.1:1/v1"),
        ("--temperature", "0.5"),
        ("--max-output-tokens", "100"),
        ("--context-tokens", "1000"),
        ("--timeout", "5"),
        ("--concurrency", "3"),
        ("--retries", "0"),
        ("--retry-delay", "0.1"),
        ("--use-reasoning",),
        ("--batch-size", "7"),
        ("--candidates", "5,10"),
        ("--tau", "0.01"),
        ("--drift", "0.1"),
        ("--cap", "50"),
        ("--fallback", "7"),
        ("--peak", "difference"),
        ("--grouping", "bounded"),
        ("--max-group", "6"),
        ("--merge", "cluster"),
        ("--levels", "3"),
        ("--embedding", "openai/text-embedding-3-small"),
        ("--alike", "0.8"),
        ("--shard-size", "16"),
        ("--alarm-learned", "0.9"),
        ("--alarm-survival", "0.5"),
        ("--alarm-silent", "5"),
        ("--alarm-cost", "2.5"),
        ("--dask", "tcp://127.0.0.1:8786"),
        ("--max-concurrency", "64"),
        ("--rpm", "100"),
        ("--tpm", "100000"),
        ("--processes", "2"),
        ("--hedge", "0"),
        ("--copies", "1"),
        ("--shuffle", "spread"),
        ("--seed", "5"),
        ("--prompts", "somewhere"),
        ("--limit", "3"),
        ("--no-ground-truth",),
        ("--again",),
    ],
)
def test_every_option_changes_the_request(args: tuple[str, ...]) -> None:
    assert settings.request_of(parse(*args)) != settings.request_of(parse())


@pytest.mark.parametrize(
    ("args", "where"),
    [
        (("--batch-size", "0"), "--batch-size 0"),
        (("--tau", "1.5"), "--tau 1.5"),
        (("--hedge", "-1"), "--hedge -1"),
        (("--copies", "-1"), "--copies -1"),
        (("--timeout", "0"), "--timeout 0"),
        (("--playbook", "a/b"), "--playbook 'a/b'"),
        (("--limit", "0"), "--limit 0"),
        (("--alike", "1.2"), "--alike 1.2"),
    ],
)
def test_a_value_out_of_range_is_named(args: tuple[str, ...], where: str) -> None:
    with pytest.raises(UsageError, match=where):
        settings.request_of(parse(*args))


def test_settings_that_do_not_go_together_are_wrong_use() -> None:
    with pytest.raises(UsageError, match="merge=cluster has two levels, not 3"):
        settings.request_of(parse("--merge", "cluster", "--levels", "3"))


@pytest.mark.parametrize(
    "args",
    [
        ("--batch-size", "many"),
        ("--shard-size", "x"),
        ("--candidates", "5;10"),
        ("--price", "1"),
        ("--price", "1,2,3"),
        ("--price", "1,x"),
    ],
)
def test_what_is_no_number_is_wrong_use(args: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(*args)
    assert args[1] in capsys.readouterr().err


def test_auto_can_be_said() -> None:
    made = settings.request_of(parse("--batch-size", "auto", "--shard-size", "auto"))
    assert (made.settings.batch_size, made.settings.shard_size) == ("auto", "auto")


def test_a_field_map_is_read_and_a_bad_one_named(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text('{"id": "run.id", "input": "question"}')
    made = settings.request_of(parse("--fields", str(path)))
    assert made.source.fields == {"id": "run.id", "input": "question"}
    path.write_text("[]")
    with pytest.raises(UsageError, match=r"map\.json"):
        settings.request_of(parse("--fields", str(path)))
    with pytest.raises(UsageError, match="No such file"):
        settings.request_of(parse("--fields", str(tmp_path / "none.json")))


def test_a_day_is_an_iso_date() -> None:
    assert options.day_of("2026-11-30") == date(2026, 11, 30)
    with pytest.raises(argparse.ArgumentTypeError, match="2026-11-30"):
        options.day_of("yesterday")


@pytest.mark.parametrize("command", ["nightly", "runs", "gc", "config"])
def test_the_help_of_a_command_says_first_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit):
        main([command, "--help"])
    _, said, *_ = capsys.readouterr().out.split("\n\n")
    said = " ".join(said.split()).rstrip(".")
    assert f"{command} {said[:1].lower()}{said[1:]}" in listed


def test_an_abbreviation_keeps_its_capitals_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    assert "uS dollars" not in capsys.readouterr().out


def test_help_shows_the_defaults_of_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "(auto)" in text
    assert "(5,10,20,40,80)" in text
    assert "of the sampling (0.0)" in text


# days


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("2026-11-01..2026-11-30", (date(2026, 11, 1), date(2026, 11, 30))),
        ("2026-11-05", (date(2026, 11, 5), date(2026, 11, 5))),
        ("2026-02-28..2026-03-01", (date(2026, 2, 28), date(2026, 3, 1))),
    ],
)
def test_a_range_of_days_has_both_its_ends(text: str, ends: tuple[date, date]) -> None:
    made = settings.range_of(text)
    assert (made.days[0], made.days[-1]) == ends
    assert len(made.days) == len(made) == (ends[1] - ends[0]).days + 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("2026-11-30..2026-11-01", "ends before it starts"),
        ("2000-01-01..2026-01-01", "9,498 days; at most 3,660"),
        ("2026-13-01", "no range of days such as"),
        ("yesterday", "no range of days such as"),
        ("2026-11-01..", "no range of days such as"),
        ("2026-11-01..2026-11-02..2026-11-03", "no range of days such as"),
        ("..2026-11-02", "no range of days such as"),
    ],
)
def test_a_bad_range_is_wrong_use_and_says_how_to_write_one(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        settings.range_of(text)


def of_night(*args: str) -> Nights:
    parser = argparse.ArgumentParser()
    parser.add_argument("--day", type=options.day_of)
    options.add_nights(parser)
    return settings.nights_of(parser.parse_args(args))


def test_a_night_looks_back_a_week_unless_it_is_told_otherwise() -> None:
    assert of_night() == Nights(lookback=7, missed="run")
    assert of_night("--lookback", "3", "--missed", "skip") == Nights(lookback=3, missed="skip")
    assert of_night("--day", "2026-11-05") == Nights()


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--lookback", "-1"), "--lookback -1"),
        (("--lookback", "367"), "--lookback 367"),
        (("--day", "2026-11-05", "--lookback", "3"), "--lookback is for nights without --day"),
        (("--day", "2026-11-05", "--missed", "run"), "--missed is for nights without --day"),
    ],
)
def test_what_a_night_cannot_do_is_wrong_use(args: tuple[str, ...], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        of_night(*args)


def test_a_bar_out_of_range_names_its_option() -> None:
    with pytest.raises(UsageError, match="--alarm-learned 2"):
        settings.request_of(parse("--alarm-learned", "2"))
