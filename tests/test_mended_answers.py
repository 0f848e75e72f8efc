"""Answers that are almost JSON: mended where no word changes, else rejected."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from contextlib import suppress

import pytest
from raw_answers import read

from combee_core.answers import MAX_DEPTH
from combee_core.errors import AnswerMalformed


def test_curly_quotes_as_structure_are_read() -> None:
    assert read("{“operations”: [{“type”: “ADD”, “content”: “net income”}]}") == {
        "operations": [{"type": "ADD", "content": "net income"}]
    }


def test_curly_quotes_in_a_text_stay_as_they_are() -> None:
    assert read('{"content": "say “net”, not “gross”"}') == {"content": "say “net”, not “gross”"}


def test_curly_quotes_that_cannot_be_told_apart_are_rejected() -> None:
    with pytest.raises(AnswerMalformed):
        read("{“content”: “say “net” income”}")


def test_inner_quotes_give_the_whole_sentence() -> None:
    assert read('{"content": "use "net" income, not gross"}') == {"content": 'use "net" income, not gross'}


@pytest.mark.parametrize("end", [" income, not gross", ", not gross", ", never: gross", ' and "more": b'])
@pytest.mark.parametrize("start", ["use ", "", "first, "])
def test_inner_quotes_never_cut_a_text_or_make_a_key(start: str, end: str) -> None:
    raw = f'{{"type": "ADD", "content": "{start}"net"{end}"}}'
    with suppress(AnswerMalformed):
        assert read(raw) == {"type": "ADD", "content": f'{start}"net"{end}'}


def test_a_quote_at_the_end_of_a_text_stays_in_it() -> None:
    raw = '{"content": "use "net"", "section": "gross"}'
    assert read(raw) == {"content": 'use "net"', "section": "gross"}


@pytest.mark.parametrize(
    "raw",
    [
        "{'operations': [{'type': 'ADD', 'content': 'net income'}]}",
        '{"operations": [{"type": "ADD", "content": "net income",},],}',
        '{operations: [{type: "ADD", content: "net income"}]}',
        '{"operations": [{"type": "ADD" "content": "net income"}]}',
    ],
)
def test_sloppy_json_is_mended_where_no_word_changes(raw: str) -> None:
    assert read(raw) == {"operations": [{"type": "ADD", "content": "net income"}]}


def test_python_literals_and_escapes_are_mended() -> None:
    raw = '{"a": True, "b": None, "c": "one\\ntwo \\"three\\" é", "d": -1.5,}'
    assert read(raw) == {"a": True, "b": None, "c": 'one\ntwo "three" é', "d": -1.5}


@pytest.mark.parametrize("raw", ['{"a": "x", // why\n "b": 1}', '{"a": yes indeed}', '{"a": "x" and more}'])
def test_mending_that_would_drop_words_is_rejected(raw: str) -> None:
    with pytest.raises(AnswerMalformed, match="change its words"):
        read(raw)


def test_a_raw_line_break_in_a_text_is_kept() -> None:
    assert read('{"content": "one\ntwo"}') == {"content": "one\ntwo"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_rejected(number: str) -> None:
    with pytest.raises(AnswerMalformed):
        read(f'{{"score": {number}}}')


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    value = read(r'{"a\udc00": "x\ud800y \ud83d\ude00"}')
    assert value == {"a�": "x�y 😀"}
    json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "bomb", ["[" * 200_000, '{"a":' * 200_000, "[" * 5000 + "]" * 5000, '[{"a":' * 400 + "1" + "}]" * 400]
)
def test_depth_bombs_are_malformed(bomb: str) -> None:
    with pytest.raises(AnswerMalformed, match=r"nested|ends in the middle"):
        read(bomb)


def test_nesting_is_read_down_to_the_limit() -> None:
    deep = json.dumps({"a": 1})
    for _ in range(MAX_DEPTH - 1):
        deep = f'{{"a": {deep}}}'
    assert isinstance(read(deep), dict)
    with pytest.raises(AnswerMalformed, match=f"deeper than {MAX_DEPTH}"):
        read(f'{{"a": {{"b": {deep}}}}}')


@pytest.mark.parametrize("text", ["I see no lesson here.", "42", "null", '"text"', "[1]", "[1] and items[]"])
def test_an_answer_without_an_object_is_malformed_and_its_beginning_is_no_part_of_the_message(text: str) -> None:
    with pytest.raises(AnswerMalformed, match=r"no JSON object \(\d+ characters\)") as caught:
        read(text)
    assert caught.value.excerpt == text
    assert text not in repr(caught.value)


def test_of_a_long_answer_the_beginning_is_kept_and_survives_a_journey_between_processes() -> None:
    with pytest.raises(AnswerMalformed) as caught:
        read("word " * 10_000)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.excerpt == ("word " * 40)
    assert str(again) == "the answer holds no JSON object (50,000 characters)"


def test_without_the_repair_library_a_broken_answer_is_malformed_and_a_good_one_read() -> None:
    script = (
        "import sys; sys.modules['json_repair'] = None\n"
        "from combee_core.answers import read_answer\n"
        "from combee_core.errors import AnswerMalformed\n"
        "from combee_core.calls import Completion\n"
        "print(read_answer(Completion(text='[]')))\n"
        "try: read_answer(Completion(text='{\"a\": 1,}'))\n"
        "except AnswerMalformed as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "not valid JSON (9 characters)"]


def test_reading_a_good_answer_needs_no_repair_library() -> None:
    script = (
        "import sys\n"
        "from combee_core.answers import read_answer\n"
        "from combee_core.calls import Completion\n"
        "read_answer(Completion(text='{\"a\": 1}'))\n"
        "print('json_repair' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
