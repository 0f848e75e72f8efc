"""The nouns of a call: a prompt's hash is that of what the model sees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from combee_core.calls import Message, Prompt, Receipt

SCHEMA = {"type": "object"}
CONVERSATIONS = st.lists(
    st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=st.text(max_size=5)),
    min_size=1,
    max_size=4,
)


def prompt(*messages: Message, schema: dict[str, str] = SCHEMA) -> Prompt:
    return Prompt(stage="reflect", item="t1", messages=messages, answer_schema=schema)


@given(CONVERSATIONS, CONVERSATIONS)
def test_two_prompts_have_the_same_hash_if_they_say_the_same(one: list[Message], other: list[Message]) -> None:
    assert (prompt(*one).sha == prompt(*other).sha) == (one == other)
    assert prompt(*one).sha == prompt(*(message.model_copy() for message in one)).sha


def test_texts_that_move_between_messages_change_the_hash() -> None:
    def two(first: str, second: str) -> str:
        return prompt(Message(role="system", content=first), Message(role="user", content=second)).sha

    assert len({two("ab", "c"), two("a", "bc"), two("", "abc"), two("c", "ab")}) == 4


def test_the_form_of_the_answer_is_part_of_the_hash_and_the_item_is_not() -> None:
    message = Message(role="user", content="what?")
    assert prompt(message).sha != prompt(message, schema={"type": "array"}).sha
    assert prompt(message).sha == prompt(message).model_copy(update={"item": "t2"}).sha


def test_a_receipt_of_before_there_were_hedges_can_be_read() -> None:
    old = '{"stage": "reflect", "item": "t1", "prompt_sha": "0", "attempt": 1, "accepted": true, "model": "m"}'
    assert not Receipt.model_validate_json(old).hedge
