"""Lines that no honest logger writes: cut, glued, padded, broken; read through the plain format."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import file, lines, plain_row

from combee_core.ports import ReadOptions
from combee_core.traces.jsonl import records, rows
from combee_core.traces.plain import READER
from combee_core.types import TraceFile, Trajectory, Unread

objects = st.dictionaries(st.text(), st.none() | st.integers() | st.floats() | st.text(), max_size=3)


def items(source: TraceFile) -> list[Trajectory | Unread]:
    return list(READER.read(source, ReadOptions()))


def lost(source: TraceFile) -> list[Unread]:
    return [item for item in items(source) if isinstance(item, Unread)]


def ids(source: TraceFile) -> list[str]:
    return [item.trace_id for item in items(source) if isinstance(item, Trajectory)]


def test_a_cut_last_line_is_counted_with_its_number_and_costs_nothing_else():
    text = lines([plain_row(1), plain_row(2)]) + '{"id": "q3", "inp'
    (unread,) = lost(file(text))
    assert ids(file(text)) == ["q1", "q2"]
    assert unread.where == "day/traces.jsonl:3"
    assert unread.trace_id.startswith("unread-")


def test_a_missing_final_newline_loses_nothing():
    assert ids(file(lines([plain_row(1), plain_row(2)]).rstrip("\n"))) == ["q1", "q2"]


@pytest.mark.parametrize("noise", ["5", '"text"', "[1]", "null", "true", "NaN", "-", "{", '{"a": }', "\ud800"])
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


@given(st.lists(objects, max_size=5))
def test_every_line_gives_exactly_one_item(given_rows):
    found = list(rows(lines(given_rows).encode(), "x"))
    assert len(found) == len(given_rows)
    assert [item.where for item in found] == [f"x:{n}" for n in range(1, len(given_rows) + 1)]


@pytest.mark.parametrize("depth", [50, 200, 400, 600, 800, 900, 950, 980])
def test_nesting_at_any_depth_costs_at_most_its_line(depth):
    nested = "[" * depth + "]" * depth
    source = file(f'{{"input": {nested}, "output": {nested}}}\n' + lines([plain_row(1)]))
    assert "q1" in ids(source)
    assert len(items(source)) == 2
