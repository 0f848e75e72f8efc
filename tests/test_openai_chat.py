"""Chat logs in their three shapes, and what loggers do to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import TRACES, needs
from trace_samples import POLICY, ask, batch_row, call, chat_jsonl, chat_row, file, gateway_row, plain_row, say

from combee_core.ports import ReadOptions
from combee_core.traces.openai_chat import READER
from combee_core.types import TraceFile, Trajectory, Unread

REAL = TRACES / "nasty" / "chat_completions_log.jsonl"


def items(source: TraceFile) -> list[Trajectory | Unread]:
    return list(READER.read(source, ReadOptions()))


def one(row: object) -> Trajectory:
    (item,) = items(chat_jsonl([row]))
    assert isinstance(item, Trajectory), item
    return item


def test_a_fine_tuning_row_is_policy_task_and_steps():
    run = one(chat_row())
    assert (run.policy, run.task) == (POLICY, "Where is NL14?")
    assert [(step.role, step.text) for step in run.steps] == [("assistant", "Platform 4.")]
    assert run.outcome.score is None
    assert run.outcome.source == "none"
    assert run.source == "day/chat.jsonl:1"


def test_a_batch_row_has_its_answer_and_its_own_id():
    run = one(batch_row())
    assert run.trace_id == "batch-1"
    assert run.steps[0].text == "Platform 4."
    assert run.when == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_gateway_row_joins_request_and_response():
    run = one(gateway_row())
    assert (run.trace_id, run.task, run.steps[-1].text) == ("chatcmpl-g", "Where is NL14?", "Platform 4.")
    assert run.metadata == {"finish_reason": "stop"}


def test_a_gateway_row_may_hold_its_parts_as_json_text():
    row = gateway_row()
    as_text = {name: json.dumps(part) for name, part in row.items()}
    assert one(as_text).steps == one(row).steps


def test_the_three_shapes_may_be_mixed_in_one_file():
    found = items(chat_jsonl([chat_row(), batch_row(), gateway_row()]))
    assert all(isinstance(item, Trajectory) for item in found)
    assert len(found) == 3


def test_rows_of_another_kind_are_named_and_the_rest_is_read():
    found = items(chat_jsonl([chat_row(), plain_row(), gateway_row()]))
    lost = [item for item in found if isinstance(item, Unread)]
    assert [(item.where, item.trace_id) for item in lost] == [("day/chat.jsonl:2", "q1")]
    assert "no chat messages" in lost[0].reason


def test_the_outcome_on_a_row_is_kept():
    run = one(chat_row(score="0.5", label="half", feedback="platform 5 was right", metadata={"who": "Ada", "n": 2}))
    assert (run.outcome.score, run.outcome.label, run.outcome.feedback) == (
        0.5,
        "half",
        "platform 5 was right",
    )
    assert run.outcome.source == "logged"
    assert run.metadata == {"who": "Ada", "n": "2"}


@pytest.mark.parametrize(
    ("more", "score", "label", "source"),
    [
        ({"reward": 1}, 1.0, "right", "reward"),
        ({"reward": 0}, 0.0, "wrong", "reward"),
        ({"score": True}, 1.0, "right", "reward"),
        ({"score": 0, "reward": 1}, 0.0, "wrong", "reward"),
        ({"score": None}, None, "", "none"),
        ({"score": "C"}, None, "score is not a number: 'C'", "none"),
        ({"score": float("nan")}, None, "score is not a number: nan", "none"),
        ({"score": {"a": 1}}, None, "score is not a number: {'a': 1}", "none"),
    ],
)
def test_scores_are_numbers_or_nothing(more, score, label, source):
    outcome = one(chat_row(**more)).outcome
    assert (outcome.score, outcome.label, outcome.source) == (score, label, source)


def test_tool_calls_and_their_results_are_steps():
    row = {
        "messages": [ask("Book NL14"), *call("book_seat", {"train": "NL14"}, "B7"), say("Booked.")],
        "id": "x",
    }
    run = one(row)
    assert run.steps[0].calls[0].name == "book_seat"
    assert json.loads(run.steps[0].calls[0].arguments) == {"train": "NL14"}
    assert (run.steps[1].role, run.steps[1].name, run.steps[1].text) == ("tool", "book_seat", "B7")


def test_a_tool_result_without_a_name_takes_it_from_its_call():
    asked, answered = call("book_seat", {}, "B7")
    del answered["name"]
    assert one({"messages": [ask("Book"), asked, answered]}).steps[1].name == "book_seat"


def test_the_single_function_call_of_old_logs_is_a_call():
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert one({"messages": [ask("q"), message]}).steps[0].calls[0].name == "f"


def test_arguments_that_are_cut_are_kept_as_they_are():
    assert one({"messages": [ask("q"), call("f", '{"a": 1')[0]]}).steps[0].calls[0].arguments == '{"a": 1'


def test_a_refusal_is_the_text_of_its_message():
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    assert one({"messages": [ask("q"), message]}).steps[0].text == "I will not."


def test_an_image_becomes_a_note_of_its_kind_and_size():
    data = "A" * 8_000_000
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    run = one(chat_row(question=[{"type": "text", "text": "What is this?"}, image, "a plan"]))
    assert run.task == "What is this?\n[image png 6.0 MB]\na plan"


@pytest.mark.parametrize(
    ("part", "note"),
    [
        ({"type": "image_url", "image_url": {"url": "https://host/x.png?key=s"}}, "[image]"),
        ({"type": "input_image", "image_url": "data:image/jpeg;base64,QUJD"}, "[image jpeg 3 B]"),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD" * 1000, "format": "wav"}},
            "[audio wav 3.0 kB]",
        ),
        ({"type": "file", "file": {"file_data": "QUJD"}}, "[file]"),
    ],
)
def test_other_parts_become_notes(part, note):
    assert one(chat_row(question=[part])).task == note


def test_base64_inside_plain_text_becomes_a_note_too():
    answer = f"See data:image/png;base64,{'QUJD' * 100} here"
    assert one(chat_row(answer)).steps[0].text == "See [image png 300 B] here"


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        (1772452800, datetime(2026, 3, 2, 12, tzinfo=UTC)),
        (1772452800000, datetime(2026, 3, 2, 12, tzinfo=UTC)),
        ("1772452800.0", datetime(2026, 3, 2, 12, tzinfo=UTC)),
        ("2026-03-02T12:00:00Z", datetime(2026, 3, 2, 12, tzinfo=UTC)),
        ("2026-03-02T12:00:00", datetime(2026, 3, 2, 12)),
        ("yesterday", None),
        ({}, None),
        (True, None),
        (1e300, None),
        ("NaN", None),
    ],
)
def test_the_time_is_read_in_the_usual_spellings(stamp, moment):
    assert one(chat_row(timestamp=stamp)).when == moment


def test_ids_come_from_the_row_or_from_its_content():
    assert one(chat_row(id=17)).trace_id == "17"
    assert one(chat_row(custom_id="a\n b", id="c")).trace_id == "a b"
    assert one(chat_row()).trace_id == one(chat_row()).trace_id
    assert one(chat_row()).trace_id != one(chat_row("Platform 5.")).trace_id
    assert len(one(chat_row(id="x" * 999)).trace_id) == 200


def test_a_row_without_an_answer_has_no_agent_activity():
    assert one({"messages": [ask("hello?")]}).outcome.status == "no_agent_activity"


def test_a_failed_request_is_an_error():
    assert one(batch_row(error={"code": "x"})).outcome.status == "error"
    row = batch_row()
    row["response"]["status_code"] = 500
    assert one(row).outcome.status == "error"


def test_a_message_that_is_none_costs_its_row_alone():
    bad = {"messages": [ask("q"), "what"], "id": "bad"}
    odd = {"messages": [ask("q"), {"role": "wizard", "content": "x"}], "id": "odd"}
    found = items(chat_jsonl([bad, odd, chat_row()]))
    assert [item.trace_id for item in found if isinstance(item, Unread)] == ["bad", "odd"]
    assert "'wizard'" in found[1].reason
    assert isinstance(found[2], Trajectory)


def test_a_lone_surrogate_is_replaced_also_inside_nested_json_text():
    row = gateway_row("broken \ud83d here")
    run = one({name: json.dumps(part) for name, part in row.items()})
    assert run.steps[0].text == "broken � here"
    assert run.model_dump_json()


def test_two_halves_of_one_character_are_joined():
    line = json.dumps(chat_row("train \U0001f682"))
    assert "\\ud83d" in line
    assert items(file(line))[0].steps[0].text == "train \U0001f682"


def test_the_same_rows_in_one_array_are_read_alike():
    rows = [chat_row(), gateway_row()]
    found = items(file(json.dumps(rows, indent=1)))
    assert [run.trace_id for run in found] == [run.trace_id for run in items(chat_jsonl(rows))]


def test_only_chat_is_recognised():
    assert READER.recognises(chat_jsonl([chat_row()]))
    assert READER.recognises(chat_jsonl([5, "x", batch_row()]))
    for other in (
        [plain_row()],
        [{"messages": "x"}],
        [{"messages": [{"role": ["x"]}]}],
        [{"messages": []}],
        [],
    ):
        assert not READER.recognises(chat_jsonl(other))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_value_in_any_place_raises(value):
    rows = [value, chat_row(value), chat_row(question=value), {"messages": value}, {"messages": [value]}]
    rows += [
        {"request": value, "response": value},
        {"response": {"choices": value}},
        batch_row(custom_id=value),
    ]
    rows += [chat_row(**dict.fromkeys(("score", "label", "feedback", "metadata", "timestamp", "error"), value))]
    rows += [{"messages": [ask("q"), {"role": "assistant", "tool_calls": value}]}]
    source = chat_jsonl(rows)
    READER.recognises(source)
    for item in items(source):
        assert isinstance(item, Trajectory | Unread)
        item.model_dump_json()


@needs(REAL)
def test_a_real_log_of_mixed_rows_is_read():
    found = items(file(REAL.read_bytes(), "log.jsonl"))
    runs = [item for item in found if isinstance(item, Trajectory)]
    assert runs[0].trace_id == "chatcmpl-1"
    assert "AAAA" not in runs[1].model_dump_json()
    assert len(found) - len(runs) == 4
