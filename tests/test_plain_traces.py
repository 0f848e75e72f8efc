"""Plain rows, their field map, and lines that no honest logger writes."""

from __future__ import annotations

import codecs
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import file, lines, plain_jsonl, plain_row

from combee_core.errors import UsageError
from combee_core.ports import ReadOptions
from combee_core.traces.jsonl import records, rows
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


def ids(source: TraceFile) -> list[str]:
    return [item.trace_id for item in items(source) if isinstance(item, Trajectory)]


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


def test_a_cut_last_line_is_counted_with_its_number_and_costs_nothing_else():
    text = lines([plain_row(1), plain_row(2)]) + '{"id": "q3", "inp'
    (unread,) = lost(file(text))
    assert ids(file(text)) == ["q1", "q2"]
    assert unread.where == "day/traces.jsonl:3"
    assert unread.trace_id.startswith("unread-")


def test_a_missing_final_newline_loses_nothing():
    assert ids(file(lines([plain_row(1), plain_row(2)]).rstrip("\n"))) == ["q1", "q2"]


@pytest.mark.parametrize(
    "noise", ["5", '"text"', "[1]", "null", "true", "NaN", "-", "{", '{"a": }', "\ud800"]
)
def test_a_line_that_is_no_object_is_counted_and_the_rest_is_read(noise):
    text = lines([plain_row(1)]).encode() + noise.encode("utf-8", "surrogatepass") + b"\n"
    source = file(text + lines([plain_row(2)]).encode())
    assert ids(source) == ["q1", "q2"]
    assert [unread.where[-2:] for unread in lost(source)] == [":2"]


def test_two_records_on_a_line_are_both_read():
    assert ids(file(lines([plain_row(1)]).strip() + lines([plain_row(2)]))) == ["q1", "q2"]


def test_a_record_spliced_into_another_costs_its_line_alone():
    spliced = json.dumps(plain_row(1))[:20] + json.dumps(plain_row(2))
    source = file(f"{spliced}\n{json.dumps(plain_row(3))}\n")
    assert ids(source) == ["q3"]
    assert len(lost(source)) == 1


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + lines([plain_row(1), plain_row(2)]).replace("\n", "\r\n").encode(),
        codecs.BOM_UTF16_LE + lines([plain_row(1), plain_row(2)]).encode("utf-16-le"),
        codecs.BOM_UTF16_BE + lines([plain_row(1), plain_row(2)]).encode("utf-16-be"),
        b"\0\0\0\0" + lines([plain_row(1)]).encode() + b"\0\0" + lines([plain_row(2)]).encode() + b"\0",
        b"\n\n" + lines([plain_row(1)]).encode() + b"  \r\n\n" + lines([plain_row(2)]).encode(),
    ],
    ids=["bom-crlf", "utf-16-le", "utf-16-be", "nul", "blank"],
)
def test_marks_ends_of_line_and_runs_of_nul_change_nothing(data):
    assert ids(file(data)) == ["q1", "q2"]
    assert lost(file(data)) == []


def test_bytes_that_are_no_utf8_are_replaced():
    data = json.dumps(plain_row(output="caf?")).encode().replace(b"?", b"\xe9")
    data = data.replace(b"What is 1 + 1\xe9", b"What")
    (run,) = items(file(data))
    assert run.steps[0].text == "caf�"


def test_a_line_separator_inside_text_does_not_end_the_line():
    row = json.dumps(plain_row(output="a\u2028b\x85c"), ensure_ascii=False)
    assert items(file(row))[0].steps[0].text == "a\u2028b\x85c"


def test_raw_control_characters_inside_text_are_read():
    text = json.dumps(plain_row(output="TAB")).replace("TAB", "a\tb\x1b[0m\0c")
    assert items(file(text))[0].steps[0].text == "a\tb\x1b[0m\0c"


def test_a_lone_surrogate_becomes_a_replacement_character_and_can_be_stored():
    (run,) = items(file('{"id": "a\\ud83d", "input": "x \\uD83D y", "output": "\\udc00", "score": 1}'))
    assert (run.trace_id, run.task, run.steps[0].text) == ("a�", "x � y", "�")
    run.model_dump_json().encode()


def test_nesting_too_deep_costs_its_line_alone():
    deep = '{"input": ' * 100_000
    source = file(f"{deep}\n{json.dumps(plain_row(1))}\n")
    assert ids(source) == ["q1"]
    assert "nested too deeply" in lost(source)[0].reason


def test_a_number_too_long_to_convert_costs_its_line_alone():
    source = file('{"id": "x", "score": ' + "9" * 5000 + "}\n" + json.dumps(plain_row(1)))
    assert ids(source) == ["q1"]
    assert len(lost(source)) == 1


@pytest.mark.parametrize("space", [None, 1])
def test_rows_in_one_array_are_read_like_lines(space):
    source = file(json.dumps([plain_row(1), plain_row(2)], indent=space))
    assert ids(source) == ["q1", "q2"]
    assert lost(source) == []


def test_what_follows_an_array_is_named():
    found = list(records(b'[{"a": 1}] {"b": 2} []', "x"))
    assert [item.reason for item in found if isinstance(item, Unread)] == ["something follows the array"]


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


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=5))
def test_every_line_gives_exactly_one_item(objects):
    found = list(rows(lines(objects).encode(), "x"))
    assert len(found) == len(objects)
    assert [item.where for item in found] == [f"x:{n}" for n in range(1, len(objects) + 1)]
