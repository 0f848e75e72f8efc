"""Log lines: one JSON object each, with the event's name and fields."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.cli import main
from combee_core.events import JsonLines, event, some


class Kept(logging.Handler):
    """Keeps lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def kept() -> tuple[logging.Logger, Kept]:
    handler, log = Kept(), logging.Logger("combee_core.somewhere")
    log.addHandler(handler)
    return log, handler


def lines(handler: Kept) -> list[dict[str, Any]]:
    return [json.loads(line) for line in handler.lines]


def test_an_event_has_time_level_name_sentence_and_fields(kept: tuple[logging.Logger, Kept]) -> None:
    log, handler = kept
    event(log, logging.WARNING, "items-failed", "2 of 40 failed", run="r", batch=3, items=["a", "b"], nobody=None)
    (line,) = lines(handler)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "event": "items-failed",
        "message": "2 of 40 failed",
        "run": "r",
        "batch": 3,
        "items": ["a", "b"],
    }


def test_what_others_log_is_a_line_too_and_has_no_stack(kept: tuple[logging.Logger, Kept]) -> None:
    log, handler = kept
    try:
        raise ValueError("a text of a trace") from KeyError("another")
    except ValueError:
        log.exception("it failed for %s", "a reason")
    (line,) = lines(handler)
    assert (line["event"], line["message"]) == ("combee_core.somewhere", "it failed for a reason")
    assert line["error"] == "ValueError"
    assert "text of a trace" not in handler.lines[0]


def test_a_prefect_record_says_which_run_it_is_from(kept: tuple[logging.Logger, Kept]) -> None:
    log, handler = kept
    log.info("x", extra={"flow_run_id": "f-1", "task_run_name": "reflect-t1", "flow_name": "nightly"})
    (line,) = lines(handler)
    assert (line["flow_run_id"], line["task_run_name"]) == ("f-1", "reflect-t1")


@given(st.text(), st.dictionaries(st.sampled_from(["run", "stage", "why"]), st.text() | st.integers() | st.none()))
def test_whatever_is_said_it_is_one_line_of_json(text: str, fields: dict[str, Any]) -> None:
    handler, log = Kept(), logging.Logger("x")
    log.addHandler(handler)
    event(log, logging.INFO, "any", text, **fields)
    (line,) = handler.lines
    assert len(line.split("\n")) == 1
    assert json.loads(line)["message"] == text


def test_of_many_items_the_first_are_named_and_the_rest_counted() -> None:
    assert some(["a", "b"]) == ["a", "b"]
    assert some([str(n) for n in range(30)], 2) == ["0", "1", "… and 28 more"]


# the command's own lines


def test_a_command_says_what_is_wrong_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gc", "--keep-days", "0"]) == 2
    assert capsys.readouterr().err.startswith("combee: --keep-days 0: at least 1")


@pytest.mark.parametrize(
    ("args", "environ"), [(["--log-format", "json"], {}), ([], {"COMBEE_LOG": "json"}), (["--log-format=json"], {})]
)
def test_or_in_json_wherever_the_option_stands(args: list[str], environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "combee_core.cli", "gc", *args, "--keep-days", "0"]
    done = subprocess.run(command, env={"PATH": "", **environ}, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["event"] == "failed"
    assert json.loads(line)["code"] == 2
