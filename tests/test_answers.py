"""Which JSON of a raw answer is the answer: fences, chatter, reasoning, cuts, refusals."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_answers import ADD, BARE, OBJECT, OTHER, read

from combee_core.answers import read_answer
from combee_core.calls import Completion, Usage
from combee_core.errors import AnswerEmpty, AnswerError, AnswerMalformed, AnswerTruncated, ModelRefused

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)
chatter = st.text("abc ABC.,:;!?'*#-\n", max_size=30)


@given(objects, chatter, chatter, st.sampled_from(["\n", "\n```\n", "\n```json\n", "\n~~~\n"]))
def test_any_object_survives_fences_and_chatter(value: dict[str, object], before: str, after: str, fence: str) -> None:
    closing = fence.replace("json", "")
    assert read(before + fence + json.dumps(value) + closing + after) == value
    assert read(before + fence + json.dumps(value, indent=2, ensure_ascii=False) + closing + after) == value


@given(st.lists(st.dictionaries(texts, values, min_size=1, max_size=3), max_size=3), chatter)
def test_any_array_of_objects_survives_chatter(value: list[dict[str, object]], before: str) -> None:
    assert read(f"{before}\n{json.dumps(value)}") == value


@given(objects, objects, st.sampled_from(["think", "thinking", "reasoning", "THINK"]))
def test_the_object_after_a_reasoning_block_wins_whatever_draft_is_in_it(
    draft: dict[str, object], value: dict[str, object], tag: str
) -> None:
    # A draft that holds the closing tag ends the block early, as it does for any reader.
    thought = json.dumps(draft).replace("</", "< /")
    assert read(f"<{tag}>first try {thought}, better:</{tag}>\n{json.dumps(value)}") == value


@given(st.text(max_size=60) | st.text('{}[]"“”,:\\ a1<>/think', max_size=60))
def test_any_text_gives_json_or_an_answer_error(text: str) -> None:
    with suppress(AnswerError):
        json.dumps(read(text), allow_nan=False, ensure_ascii=False).encode()


@given(objects.filter(bool), st.data())
def test_no_cut_of_an_object_is_ever_read(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(AnswerMalformed):
        read(cut)


def test_chatter_and_a_fence_leave_the_operations_of_the_bare_object() -> None:
    wrapped = f"Of course, here they are.\n```json\n{BARE}\n```\nI hope that helps [1]."
    assert read(wrapped) == read(BARE) == OBJECT


def test_braces_of_a_template_in_the_chatter_are_no_answer() -> None:
    assert read(f"Dear {{name}}, see items[] and [my notes]: {BARE}") == OBJECT


def test_tags_and_fences_inside_a_text_are_only_text() -> None:
    value = {"operations": [{**ADD, "content": "write <think> and </think> and ``` as they are"}]}
    assert read(f"Here:\n```json\n{json.dumps(value)}\n```") == value


def test_an_empty_draft_in_a_closed_think_block_is_not_the_answer() -> None:
    assert read('<think>Perhaps {"operations": []}?</think>\n' + BARE) == OBJECT


def test_reasoning_whose_opening_tag_is_in_the_prompt_is_dropped() -> None:
    draft = json.dumps({"operations": [OTHER]})
    assert read(f"Perhaps {draft}?</think>\n{BARE}") == OBJECT


def test_several_reasoning_blocks_are_dropped() -> None:
    assert read("<think>a</think><reasoning>{}</reasoning> so: " + BARE + "<think>done</think>") == OBJECT


def test_an_object_in_an_unclosed_reasoning_block_is_not_trusted() -> None:
    with pytest.raises(AnswerMalformed, match="reasoning block never closed"):
        read("<think>I could write " + BARE)


def test_thoughts_after_the_answer_do_not_hurt_it() -> None:
    assert read(BARE + '<think>or {"operations": []}?') == OBJECT


def test_an_answer_at_the_token_limit_is_cut_even_if_it_parses() -> None:
    usage = Usage(output_tokens=512)
    with pytest.raises(AnswerTruncated, match="cut at the token limit of 512 output tokens"):
        read(BARE, finish="length", usage=usage)


def test_a_cut_answer_is_never_mended() -> None:
    for finish in ("length", "stop"):
        with pytest.raises((AnswerTruncated, AnswerMalformed)) as caught:
            read(BARE[: len(BARE) // 2], finish=finish)
        assert "mended" in str(caught.value) or "token limit" in str(caught.value)


def test_a_whole_operation_inside_a_cut_list_is_not_the_answer() -> None:
    with pytest.raises(AnswerMalformed, match="ends in the middle"):
        read('{"operations": [' + json.dumps(ADD) + ', {"type": "AD')


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_a_budget_spent_on_reasoning_is_named_as_such(text: str | None) -> None:
    usage = Usage(output_tokens=4096)
    with pytest.raises(AnswerTruncated, match="4096 output tokens was spent on reasoning"):
        read(text, finish="length", reasoning="so many thoughts", usage=usage)


def test_unknown_usage_does_not_hide_a_truncation() -> None:
    with pytest.raises(AnswerTruncated, match="token limit"):
        read(None, finish="length")


@pytest.mark.parametrize("text", [None, "", "\n"])
def test_an_answer_in_the_reasoning_field_alone_is_empty_unless_asked_for(text: str | None) -> None:
    completion = Completion(text=text, reasoning=BARE)
    with pytest.raises(AnswerEmpty, match="reasoning field alone"):
        read_answer(completion)
    assert read_answer(completion, use_reasoning=True) == OBJECT


def test_the_content_goes_before_the_reasoning_field() -> None:
    completion = Completion(text=BARE, reasoning='{"operations": []}')
    assert read_answer(completion, use_reasoning=True) == OBJECT


def test_nothing_at_all_is_an_empty_answer_and_not_an_empty_update() -> None:
    with pytest.raises(AnswerEmpty):
        read(None)


def test_a_refusal_is_a_refusal_and_not_bad_json() -> None:
    with pytest.raises(ModelRefused, match="the model refused"):
        read(None, refusal="I cannot help with that")


def test_a_filtered_answer_is_a_refusal_even_with_text() -> None:
    with pytest.raises(ModelRefused, match="content_filter"):
        read(BARE, finish="content_filter")


def test_a_bare_array_is_an_answer() -> None:
    assert read(json.dumps([ADD, OTHER])) == [ADD, OTHER]


@pytest.mark.parametrize("text", ["[]", "```json\n[]\n```", "Nothing to do: []"])
def test_an_empty_array_is_a_valid_empty_answer(text: str) -> None:
    assert read(text) == []


def test_two_objects_with_operations_are_joined() -> None:
    assert read(f"{BARE}\n{json.dumps({'operations': [OTHER]})}") == {"operations": [ADD, OTHER]}


def test_the_same_object_twice_counts_once() -> None:
    assert read(f"{BARE}\nAgain:\n```json\n{BARE}\n```") == OBJECT


def test_an_empty_draft_beside_the_answer_changes_nothing() -> None:
    assert read(f"{{}} {BARE} []") == OBJECT


@pytest.mark.parametrize(
    "text",
    [
        '{"key_insight": "a"} {"key_insight": "b"}',
        f'{BARE} {{"key_insight": "b"}}',
        f"[{json.dumps(ADD)}] [{json.dumps(OTHER)}]",
        f"{BARE} {json.dumps(OTHER)}",
    ],
)
def test_one_of_several_answers_is_never_picked(text: str) -> None:
    with pytest.raises(AnswerMalformed, match="2 different JSON values"):
        read(text)


def test_a_key_given_twice_is_rejected_and_not_halved() -> None:
    with pytest.raises(AnswerMalformed):
        read(f'{{"operations": [{json.dumps(ADD)}], "operations": [{json.dumps(OTHER)}]}}')
