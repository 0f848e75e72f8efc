"""Faults of the simulated server: how they are written, which calls they hit, and what they make of an answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.calls import Message
from combee_core.errors import UsageError
from combee_core.simulation.asked import Asked, asked
from combee_core.simulation.faults import KINDS, Fault, Faults, parse_fault
from combee_core.simulation.spoil import Choice, spoil

TEXT = '{"reasoning": "why", "operations": [{"type": "ADD", "content": "For ROE 20, not 0.2.", "from": [1]}]}'


def call(text: str = "stage: curate, group 3 of 6\n\nr1") -> Asked:
    return asked([Message(role="user", content=text)])


def test_a_fault_is_read_with_all_its_keys() -> None:
    text = "stage=curate, group=3, kind=429, rate=0.5, count=2, retry_after=7, contains=ROE"
    assert parse_fault(text) == Fault("429", "curate", 3, "ROE", 0.5, 2, 7.0)


def test_all_keys_but_the_kind_may_be_left_out() -> None:
    assert parse_fault("kind=500") == Fault("500", "", None, "", 1.0, 0, 1.0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_can_be_asked_for(kind: str) -> None:
    assert parse_fault(f"kind={kind}").kind == kind


def test_the_kinds_are_these() -> None:
    assert set(KINDS) == {
        *("429", "529", "500", "timeout", "drop", "truncated", "fenced", "bare_array"),
        *("reasoning", "reasoning_unclosed", "refusal", "filter", "empty", "malformed"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind=boom", "no kind 'boom'; the kinds are 429: "),
        ("stage=curate", "no kind ''"),
        ("", "no key ''; the keys are kind: "),
        ("kind=500,colour=red", "no key 'colour'; the keys are kind: "),
        ("kind=500,rate=2", "between 0 and 1"),
        ("kind=500,rate=-1", "rate is a number, not '-1'"),
        ("kind=500,count=few", "count is a number, not 'few'"),
        ("kind=500,group=1.5", "group is a number"),
        ("kind=429,retry_after=soon", "retry_after is a number"),
    ],
)
def test_a_wrong_fault_is_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_fault(text)
    assert repr(text) in str(caught.value)


def test_a_fault_hits_only_calls_of_its_stage_group_and_text() -> None:
    here, elsewhere = call(), call("stage: curate, group 4 of 6\n\nr1")
    merging = call("stage: merge\n\no1")
    for text, hits in [
        ("kind=500", [True, True, True]),
        ("kind=500,stage=curate", [True, True, False]),
        ("kind=500,stage=curate,group=3", [True, False, False]),
        ("kind=500,contains=o1", [False, False, True]),
    ]:
        faults = Faults((parse_fault(text),))
        assert [faults.strike(one, 0) is not None for one in (here, elsewhere, merging)] == hits


def test_a_count_limits_a_fault_to_the_first_calls() -> None:
    faults = Faults((parse_fault("kind=500,count=2"),))
    assert [faults.strike(call(), 0) is not None for _ in range(4)] == [True, True, False, False]


def test_the_first_fault_that_hits_wins_and_the_next_takes_over_when_it_is_spent() -> None:
    faults = Faults((parse_fault("kind=500,count=1"), parse_fault("kind=empty")))
    kinds = [fault.kind for fault in (faults.strike(call(), 0) for _ in range(3)) if fault]
    assert kinds == ["500", "empty", "empty"]


def test_other_faults_may_be_put_in_force() -> None:
    faults = Faults((parse_fault("kind=500,count=1"),))
    faults.strike(call(), 0)
    faults.replace([parse_fault("kind=empty,count=1")])
    struck = faults.strike(call(), 0)
    assert struck is not None
    assert struck.kind == "empty"
    faults.replace([])
    assert faults.strike(call(), 0) is None


def test_a_rate_hits_its_share_and_the_same_calls_in_any_order() -> None:
    texts = [f"stage: reflect\n\n{n}" for n in range(1_000)]
    plan = (parse_fault("kind=500,rate=0.2"),)
    forwards, backwards = Faults(plan), Faults(plan)
    hit = {text for text in texts if forwards.strike(call(text), 0)}
    assert hit == {text for text in reversed(texts) if backwards.strike(call(text), 0)}
    assert len(hit) == pytest.approx(200, abs=45)


def test_a_prompt_that_was_hit_may_pass_when_it_is_asked_again() -> None:
    faults = Faults((parse_fault("kind=500,rate=0.5"),))
    assert {faults.strike(call(), 0) is None for _ in range(40)} == {True, False}


def test_rate_zero_never_hits() -> None:
    faults = Faults((parse_fault("kind=500,rate=0"),))
    assert not any(faults.strike(call(), 0) for _ in range(50))


def test_a_cut_answer_ends_in_the_middle_and_says_so() -> None:
    assert spoil("truncated", TEXT) == Choice(TEXT[: len(TEXT) // 2], finish="length")


def test_a_fenced_answer_has_the_object_between_two_sentences() -> None:
    content = spoil("fenced", TEXT).content or ""
    assert f"```json\n{TEXT}\n```" in content
    assert not content.startswith("```")
    assert not content.endswith("```")


def test_a_bare_array_holds_the_operations() -> None:
    content = spoil("bare_array", TEXT).content
    assert json.loads(content or "") == json.loads(TEXT)["operations"]
    assert json.loads(spoil("bare_array", '{"key_insight": "x"}').content or "") == [{"key_insight": "x"}]


def test_a_think_block_holds_a_draft_that_teaches_nothing() -> None:
    closed, unclosed = spoil("reasoning", TEXT).content or "", spoil("reasoning_unclosed", TEXT).content or ""
    before, _, after = closed.partition("</think>")
    assert '"operations": []' in before
    assert after.strip() == TEXT
    assert unclosed.startswith("<think>")
    assert "</think>" not in unclosed
    assert '"operations": []' in unclosed
    assert "ROE" not in unclosed


def test_refused_filtered_and_empty_answers_have_no_content() -> None:
    assert spoil("refusal", TEXT).content is None
    assert spoil("refusal", TEXT).refusal
    assert spoil("filter", TEXT) == Choice(None, finish="content_filter")
    assert spoil("empty", TEXT) == Choice("")


def test_a_malformed_answer_is_no_json_and_holds_no_operation() -> None:
    content = spoil("malformed", TEXT).content or ""
    assert "ROE" not in content
    with pytest.raises(json.JSONDecodeError):
        json.loads(content)


@given(st.sampled_from(["", "500", "429", "timeout", "drop"]))
def test_other_faults_leave_the_answer_as_it_is(kind: str) -> None:
    assert spoil(kind, TEXT) == Choice(TEXT)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("time-out", "timeout"),
        ("dropped", "drop"),
        ("bare-array", "bare_array"),
        ("Unclosed", "reasoning_unclosed"),
        ("503", "503"),
        ("413", "413"),
    ],
)
def test_a_kind_may_be_written_in_other_ways_or_be_any_error_status(written: str, kind: str) -> None:
    assert parse_fault(f"kind={written}").kind == kind


@pytest.mark.parametrize("kind", ["200", "302", "5000", "five"])
def test_what_is_no_error_status_is_no_kind(kind: str) -> None:
    with pytest.raises(UsageError, match="no kind"):
        parse_fault(f"kind={kind}")
