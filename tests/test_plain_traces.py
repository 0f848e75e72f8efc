"""Plain rows and their field map."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import file, plain_jsonl, plain_row

from combee_core.errors import UsageError
from combee_core.ports import ReadOptions
from combee_core.traces.plain import READER, read_fields
from combee_core.types import TraceFile, Trajectory, Unread

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def items(source: TraceFile, fields: dict[str, str] | None = None) -> list[Trajectory | Unread]:
    return list(READER.read(source, ReadOptions(fields=fields)))


def one(row: object, fields: dict[str, str] | None = None) -> Trajectory:
    (item,) = items(plain_jsonl([row]), fields)
    assert isinstance(item, Trajectory), item
    return item


def lost(source: TraceFile) -> list[Unread]:
    return [item for item in items(source) if isinstance(item, Unread)]


def test_a_row_is_a_task_one_answer_and_an_outcome():
    run = one(plain_row(feedback="well done", policy="Be brief.", metadata={"team": "a"}))
    assert (run.trace_id, run.task, run.policy) == ("q1", "What is 1 + 1?", "Be brief.")
    assert [(step.role, step.text) for step in run.steps] == [("assistant", "2")]
    assert (run.outcome.score, run.outcome.label, run.outcome.feedback) == (1.0, "right", "well done")
    assert run.outcome.source == "logged"
    assert run.metadata == {"team": "a"}


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (True, 1.0),
        (False, 0.0),
        (0, 0.0),
        (-2, -2.0),
        (0.25, 0.25),
        ("0.5", 0.5),
        (" 1 ", 1.0),
        ("1e-1", 0.1),
    ],
)
def test_truth_values_numbers_and_numeric_text_are_scores(given, score):
    assert one(plain_row(score=given)).outcome.score == score


@pytest.mark.parametrize("given", ["good", "", [1], {"a": 1}, "nan", "inf", float("inf"), 10**400, "9" * 400])
def test_anything_else_is_no_score_and_says_so(given):
    outcome = one(plain_row(score=given)).outcome
    assert outcome.score is None
    assert outcome.label.startswith("score is not a number")


def test_a_missing_score_is_none_and_not_zero():
    row = plain_row()
    del row["score"]
    assert one(row).outcome.score is None
    assert one(row).outcome.label == ""
    assert one(plain_row(score=None)).outcome.score is None


def test_a_score_between_has_no_word_and_a_label_of_the_row_wins():
    assert one(plain_row(score=0.5)).outcome.label == ""
    assert one(plain_row(score=0, label="late")).outcome.label == "late"


def test_without_an_id_a_row_is_named_after_its_content():
    row = plain_row()
    del row["id"]
    assert one(row).trace_id == one(row).trace_id
    assert one(row).trace_id.startswith("row-")
    assert one(row | {"output": "3"}).trace_id != one(row).trace_id


def test_a_field_map_finds_other_names_and_walks_dotted_paths():
    row = {"q": "2+2?", "runs": [{"a": "5"}], "eval": {"reward": 0, "why": "it is 4"}, "meta.key": "k1"}
    fields = {
        "input": "q",
        "output": "runs.0.a",
        "score": "eval.reward",
        "feedback": "eval.why",
        "id": "meta.key",
    }
    run = one(row, fields)
    assert (run.trace_id, run.task, run.steps[0].text) == ("k1", "2+2?", "5")
    assert (run.outcome.score, run.outcome.feedback) == (0.0, "it is 4")


@pytest.mark.parametrize("path", ["a.b", "runs.7", "runs.x", "runs.-1", "runs.²", "q.0", "..", "runs.0.a.b"])
def test_a_path_that_leads_nowhere_is_a_missing_value(path):
    row = plain_row(runs=[{"a": "x"}], q="text")
    assert one(row, {"score": path}).outcome.score is None


def test_names_outside_the_map_stand_for_themselves():
    assert one({"id": "a", "question": "q", "output": "o"}, {"input": "question"}).task == "q"


def test_time_is_found_under_its_usual_names():
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    for name in ("time", "timestamp", "created"):
        assert one(plain_row(**{name: 1772452800})).when == noon
    assert one(plain_row(at=1772452800), {"time": "at"}).when == noon


def test_input_and_output_that_are_no_text_are_shown_as_json():
    run = one(plain_row(input={"a": [1, "é"]}, output=12))
    assert (run.task, run.steps[0].text) == ('{"a": [1, "é"]}', "12")


def test_an_empty_answer_is_an_answer_and_a_missing_one_is_not():
    assert one(plain_row(output="")).outcome.status == "finished"
    runs = items(plain_jsonl([plain_row(), plain_row(2, output=None)]))
    assert runs[1].outcome.status == "no_agent_activity"


def test_a_row_without_input_is_named():
    (unread,) = lost(plain_jsonl([plain_row(), {"id": "b", "output": "x"}]))
    assert (unread.trace_id, unread.where) == ("b", "day/plain.jsonl:2")
    assert "no input" in unread.reason


def test_a_file_of_other_rows_is_an_unknown_format_that_names_its_fields():
    (unread,) = lost(plain_jsonl([{"question": "q", "answer": "a"}, {"question": "r", "answer": "b"}]))
    assert unread.trace_id == ""
    assert unread.reason.startswith("unknown format: no input and output among question, answer")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[1]", "one object of names to paths"),
        (b'{"input": 3}', "one object of names to paths"),
        (b'{"input": ""}', "one object of names to paths"),
        (b'{"inptu": "q"}', "unknown name 'inptu'"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_a_bad_field_map_is_refused_with_its_file_and_an_example_or_the_names(data, complaint):
    with pytest.raises(UsageError, match=r"map\.json") as caught:
        read_fields(data, "map.json")
    assert complaint in str(caught.value)
    assert '"question"' in str(caught.value) or "feedback" in str(caught.value)


def test_a_good_field_map_is_returned():
    assert read_fields(b'{"input": "q", "score": "e.r"}', "map.json") == {"input": "q", "score": "e.r"}


def test_any_object_a_line_is_recognised_last_of_all():
    assert READER.recognises(plain_jsonl([5, plain_row()]))
    for content in ("", "5\n6", "hello\nworld", "[1, 2]", "\x89PNG\r\n\x1a\n"):
        assert not READER.recognises(file(content))
    assert READER.fallback


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    source = file(data)
    READER.recognises(source)
    for item in items(source):
        item.model_dump_json()


@given(json_values, json_values)
def test_no_value_in_any_field_raises(left, right):
    row = plain_row() | dict.fromkeys(("id", "output", "score", "metadata", "time"), left)
    row |= dict.fromkeys(("input", "label", "feedback", "policy"), right)
    for item in items(plain_jsonl([row, left, right])):
        assert isinstance(item, Trajectory | Unread)
        item.model_dump_json()


def test_rows_whose_answers_are_all_missing_are_still_plain_rows():
    (run,) = items(plain_jsonl([plain_row(output=None)]))
    assert run.outcome.status == "no_agent_activity"


def test_a_list_of_objects_is_shown_whole_even_if_they_have_a_type():
    assert one(plain_row(input=[{"type": "order", "n": 3}])).task == '{"type": "order", "n": 3}'


def test_long_base64_without_a_prefix_becomes_a_note():
    assert one(plain_row(output={"png": "QUJD" * 1000})).steps[0].text == '{"png": "[data base64 3.0 kB]"}'
