"""`combee config check` and `--config`: every value explained, everything wrong named, options over the file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from combee_core.cli import main, options, run_files, settings
from combee_core.errors import UsageError
from combee_core.explained import explain, lines
from combee_core.run_file import RunFile, keys, read_run_file, table_of

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "deployments").glob("*.toml"))
NIGHT = (
    'playbook = "support"\n[source]\nuris = ["here"]\nground_truth = false\n[settings.model]\nuse_reasoning = true\n'
)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A small configuration."""
    file = tmp_path / "night.toml"
    file.write_text(NIGHT)
    return file


def parse(*args: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    run_files.add_config(parser)
    options.add_run(parser)
    return parser.parse_args(list(map(str, args)))


# what is explained


def test_every_setting_is_explained_once_with_its_value_and_where_it_comes_from() -> None:
    found = {one.name: one for one in explain(read_run_file(NIGHT, "x"))}
    tables = {path for path in keys() if any(other[: len(path)] == path and other != path for other in keys())}
    assert set(found) == {".".join(path) for path in keys() if path not in tables}
    given = {name for name, one in found.items() if one.given}
    assert given == {"playbook", "source.uris", "source.ground_truth", "settings.model.use_reasoning"}
    assert found["source.uris"].value == ["here"]
    assert found["settings.model.timeout"].value == 300.0


@pytest.mark.parametrize("one", explain(RunFile()), ids=lambda one: one.name)
def test_every_setting_has_words(one: object) -> None:
    assert len(one.description) > 5  # type: ignore[attr-defined]


def test_a_line_a_setting_below_the_name_of_its_table() -> None:
    said = list(lines(explain(read_run_file(NIGHT, "x")), 1_000))
    assert "\n[settings.model]  Which model learns, and how it is asked" in said
    assert "\n[settings.day_budget]  Caps of a day in UTC, all runs of this store together" in said
    (uris,) = [line for line in said if line.startswith("uris ")]
    assert '["here"]' in uris
    assert "given" in uris
    (day,) = [line for line in said if line.startswith("day ")]
    assert day.split()[1:3] == ["-", "default"]
    plain = [line for line in said if not line.startswith("\n[")]
    assert len(plain) == len(explain(RunFile()))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_descriptions_keep_to_the_terminal_and_none_is_lost(width: int) -> None:
    file = read_run_file(NIGHT.replace('"here"', f'"/{"long/" * 12}"'), "x")
    entries = [entry for entry in lines(explain(file), width) if not entry.startswith("\n[")]
    for one, entry in zip(explain(file), entries, strict=True):
        assert one.description in " ".join(entry.split())
        assert all(len(line) <= width for line in entry.splitlines()[1:])
        assert not any(line.endswith(" ") for line in entry.splitlines())


def test_a_noun_is_a_table_and_a_plain_value_is_none() -> None:
    assert table_of(RunFile) is RunFile
    assert table_of(str) is None
    assert table_of(int | None) is None


# the command


def test_a_good_file_is_explained(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(night)]) == 0
    shown = capsys.readouterr().out
    assert f"{night}: fine; 4 settings given" in shown
    assert "Seconds for one call" in shown


def test_as_json_too(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(night), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["file"] == str(night)
    (playbook,) = [one for one in shown["settings"] if one["name"] == "playbook"]
    assert (playbook["value"], playbook["given"]) == ("support", True)
    assert playbook["description"]


def test_a_bad_file_is_wrong_use_and_everything_wrong_is_named(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night.write_text("playbok = 'x'\n[settings.model]\napi_key = 'sk-abc'\n")
    assert main(["config", "check", str(night), "--json"]) == 2
    done = capsys.readouterr()
    assert f"{night}: playbok" in done.err
    assert "set OPENAI_API_KEY" in done.err
    assert "sk-abc" not in done.err + done.out
    assert "playbok" in json.loads(done.out)["error"]["message"]


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"\xff\xfe\x00", "not a text in UTF-8")])
def test_a_file_that_cannot_be_read_is_named(
    content: bytes | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "night.toml"
    if content is not None:
        file.write_bytes(content)
    assert main(["config", "check", str(file)]) == 2
    assert f"{file}: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_files_that_come_with_the_project_are_fine(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(file)]) == 0
    assert "fine" in capsys.readouterr().out


def test_there_are_such_files() -> None:
    assert {"nightly", "local", "s3-openai"} <= {file.stem for file in FILES}


# a file under the options


def test_a_file_says_what_the_options_do_not(night: Path) -> None:
    request = settings.request_of(parse("--config", night))
    assert request == read_run_file(NIGHT, "x").request
    assert request.settings.model.use_reasoning
    assert not request.source.ground_truth


def test_an_option_counts_more_than_the_file(night: Path) -> None:
    args = parse("--config", night, "--playbook", "other", "--timeout", 5, "--tau", 0.1, "--copies", 1, "--limit", 3)
    request = settings.request_of(args, uris=("there",), timezone=None)
    assert (request.playbook, request.settings.copies, request.source.limit) == ("other", 1, 3)
    assert (request.settings.model.timeout, request.settings.sizes.tau) == (5.0, 0.1)
    assert request.source.uris == ("there",)
    assert (request.source.timezone, request.source.ground_truth) == ("UTC", False)
    assert request.settings.model.use_reasoning


def test_a_bad_option_is_named_although_there_is_a_file(night: Path) -> None:
    with pytest.raises(UsageError, match="--timeout 0"):
        settings.request_of(parse("--config", night, "--timeout", 0))


def test_a_bad_file_is_wrong_use_of_any_command(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night.write_text("playbok = 'x'")
    for command in (["learn"], ["nightly"], ["serve"], ["backfill", "2026-03-02"]):
        assert main([*command, "--config", str(night)]) == 2
        assert "did you mean playbook?" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["learn"], ["nightly"], ["backfill", "2026-03-02"]], ids=lambda words: words[0])
def test_a_run_without_anything_to_learn_from_is_wrong_use(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "empty.toml"
    file.write_text("")
    assert main([*command, "--config", str(file)]) == 2
    assert "nothing to learn from" in capsys.readouterr().err
