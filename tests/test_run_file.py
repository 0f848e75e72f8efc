"""A run configuration is read whole or refused with every key that is wrong and the way out."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.config import RunRequest
from combee_core.errors import UsageError
from combee_core.run_file import CRON, RunFile, Schedule, keys, read_run_file, shown

WHOLE = """
playbook = "support"
store = "s3://bucket/prefix"

[source]
uris = ["s3://bucket/traces"]
timezone = "Europe/Berlin"
day = 2026-11-30
fields = {id = "run.id"}

[schedule]
cron = "0 4 * * 1-5"

[settings]
batch_size = "auto"

[settings.sizes]
candidates = [5, 10]

[settings.model]
model = "openai/gpt-4o"
timeout = 60
"""


def refusal(text: str) -> list[str]:
    """What is said about a file that is refused, a line for each key."""
    with pytest.raises(UsageError) as refused:
        read_run_file(text, "night.toml")
    return str(refused.value).splitlines()


def test_an_empty_file_is_all_defaults() -> None:
    assert read_run_file("", "x") == RunFile()
    assert RunFile().request == RunRequest()
    assert RunFile().schedule.cron == CRON == "30 3 * * *"


def test_a_whole_file_says_what_a_request_says() -> None:
    file = read_run_file(WHOLE, "x")
    request = file.request
    assert isinstance(request, RunRequest)
    assert type(request) is RunRequest
    assert (request.playbook, request.store) == ("support", "s3://bucket/prefix")
    assert request.source.uris == ("s3://bucket/traces",)
    assert (request.source.day, request.source.timezone) == (date(2026, 11, 30), "Europe/Berlin")
    assert request.source.fields == {"id": "run.id"}
    assert request.settings.sizes.candidates == (5, 10)
    assert (request.settings.model.model, request.settings.model.timeout) == ("openai/gpt-4o", 60.0)
    assert file.schedule.cron == "0 4 * * 1-5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("playbok = 'x'", "night.toml: playbok: there is no such key; did you mean playbook?"),
        (
            "[settings.model]\ntemprature = 1",
            "night.toml: [settings.model] temprature: there is no such key; did you mean temperature?",
        ),
        (
            "[settings]\ntimeout = 1",
            "night.toml: [settings] timeout: is not a key here; it belongs in [settings.model] timeout",
        ),
        ("[settings]\nuri = 1", "night.toml: [settings] uri: there is no such key; did you mean uris?"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_that_there_is(text: str, said: str) -> None:
    assert refusal(text) == [said]


def test_a_key_that_is_like_no_other_is_answered_with_all_that_there_are() -> None:
    (said,) = refusal("[schedule]\nzzz = 1")
    assert said == "night.toml: [schedule] zzz: there is no such key; the keys here are cron"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[settings.model]\ntimeout = -1", "[settings.model] timeout: -1 does not fit: input should be greater than 0"),
        (
            "[settings]\nmerge = 'best'",
            "[settings] merge: \"best\" does not fit: input should be 'paper', 'cluster' or",
        ),
        ("[source]\nuris = 's3://x'", '[source] uris: "s3://x" does not fit: write a list, such as'),
        ("[source]\nday = 'soon'", '[source] day: "soon" does not fit: write a day as 2026-11-30'),
        ("source = 'x'", 'source: "x" does not fit: it is a table'),
        ("playbook = 'a/b'", 'playbook: "a/b" does not fit: use letters, digits, dots, dashes and underscores'),
        ("[source]\ntimezone = 'Mars/Base'", "[source] timezone: unknown time zone 'Mars/Base'; use a name such as"),
        ("[source]\nuris = [3]", "[source] uris: 3 does not fit: input should be a valid string"),
        ("[settings]\nmerge = 'cluster'\nlevels = 3", "settings: merge=cluster has two levels, not 3"),
        ("[schedule]\ncron = '3 30'", '[schedule] cron: "3 30" does not fit: a cron schedule has five fields'),
        ("[schedule]\ncron = '75 3 * * *'", '[schedule] cron: "75 3 * * *" does not fit: 75 in a cron schedule'),
    ],
)
def test_a_bad_value_is_named_with_file_key_and_what_would_fit(text: str, said: str) -> None:
    (line,) = refusal(text)
    assert line.startswith(f"night.toml: {said}")


def test_a_value_of_two_kinds_is_refused_in_one_line_that_names_both() -> None:
    (line,) = refusal("[settings]\nbatch_size = 'many'")
    assert line.startswith('night.toml: [settings] batch_size: "many" does not fit: input should be a valid integer')
    assert line.endswith("or input should be 'auto'")


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = refusal("colour = 1\n[source]\ntimezone = 'X'\n[settings.model]\ntimeout = 0\napi_key = 'x'\nretries = -1")
    assert len(said) == 5
    assert all(line.startswith("night.toml: ") for line in said)


@pytest.mark.parametrize("value", ["sk-" + "verysecret" * 2, "word"])
def test_a_secret_is_refused_with_the_variable_to_set_and_never_shown(value: str) -> None:
    (said,) = refusal(f"[settings.model]\nmodel = 'anthropic/claude'\napi_key = '{value}'")
    assert said.startswith("night.toml: [settings.model] api_key: looks like a secret")
    assert said.endswith("take it out and set ANTHROPIC_API_KEY")
    assert value not in said


def test_a_secret_in_the_place_of_a_value_is_not_shown_either() -> None:
    secret = "sk-" + "verysecret" * 2
    (said,) = refusal(f"[settings.model]\ntimeout = '{secret}'")
    assert secret not in said
    assert "set OPENAI_API_KEY" in said


def test_what_is_no_toml_is_said_with_line_and_column() -> None:
    (said,) = refusal("playbook = \nstore = 'x'")
    assert said.startswith("night.toml: not valid TOML: ")
    assert "line 1" in said


@pytest.mark.parametrize("cron", ["30 3 * * *", "*/5 0-6 1,15 * MON-FRI", "0 0 1 1 7", "0 */2 L * 5#2"])
def test_a_cron_schedule_has_five_fields_in_their_bounds(cron: str) -> None:
    assert Schedule(cron=cron).cron == cron


@pytest.mark.parametrize(
    "cron", ["", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "a;b * * * *"]
)
def test_what_is_none_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match="cron schedule"):
        Schedule(cron=cron)


def test_the_keys_of_a_file_are_those_of_its_settings() -> None:
    found = set(keys())
    assert {("playbook",), ("source", "day"), ("settings", "model", "rpm"), ("schedule", "cron")} <= found
    assert len(found) == len(list(keys()))
    assert shown(("settings", "model", "rpm")) == "[settings.model] rpm"
    assert shown(("playbook",)) == "playbook"


@given(st.dictionaries(st.sampled_from([path[-1] for path in keys()]), st.integers() | st.text() | st.lists(st.text())))
def test_no_file_ends_in_anything_but_a_configuration_or_a_plain_refusal(data: dict[str, Any]) -> None:
    text = "\n".join(f"{name} = {_toml(value)}" for name, value in data.items())
    try:
        read = read_run_file(text, "x")
    except UsageError as refused:
        read = str(refused)
    assert isinstance(read, RunFile) or read.startswith("x: ")


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        escaped = "".join(f"\\U{ord(letter):08X}" for letter in value)
        return f'"{escaped}"'
    return str(max(-(2**63), min(value, 2**63 - 1)))
