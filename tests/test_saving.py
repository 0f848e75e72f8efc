"""Saved answers, on every kind of store."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import receipt

from combee_core.ports import Store
from combee_core.saving import Rejection, SavedAnswer, SavedAnswers, read_record, write_record

KEY = "ab" + "0" * 62
PATH = f"answers/ab/{KEY}.json"


def always(_: object) -> bool:
    return True


def saved(value: object, item: str = "t1") -> SavedAnswer:
    return SavedAnswer(answer=value, receipt=receipt(item))


def test_what_is_accepted_is_found_again(store: Store) -> None:
    answers = SavedAnswers(store)
    assert answers.accepted(KEY, always) is None
    assert answers.accept(KEY, saved({"a": [1, None, "ü"]}), always) == saved({"a": [1, None, "ü"]})
    assert SavedAnswers(store).accepted(KEY, always) == saved({"a": [1, None, "ü"]})


def test_the_first_of_two_good_answers_stands(store: Store) -> None:
    answers = SavedAnswers(store)
    answers.accept(KEY, saved(1), always)
    assert answers.accept(KEY, saved(2), always) == saved(1)
    assert answers.accepted(KEY, always) == saved(1)


def test_the_same_answer_may_be_accepted_twice(store: Store) -> None:
    answers = SavedAnswers(store)
    assert answers.accept(KEY, saved(1), always) == answers.accept(KEY, saved(1), always)


@pytest.mark.parametrize("length", [0, 1, 10, 60])
def test_a_record_cut_at_any_length_counts_as_absent_and_is_replaced(store: Store, length: int) -> None:
    answers = SavedAnswers(store)
    store.create(PATH, write_record(saved({"key": "a long enough value to be cut in the middle"}))[:length])
    assert answers.accepted(KEY, always) is None
    assert answers.accept(KEY, saved(2), always) == saved(2)
    assert answers.accepted(KEY, always) == saved(2)


@given(st.binary(max_size=60))
def test_no_bytes_at_all_can_break_the_reading(garbage: bytes) -> None:
    store = memory()
    store.create(PATH, garbage)
    store.create(f"answers/ab/{KEY}.rejected-1.json", garbage)
    answers = SavedAnswers(store)
    assert answers.accepted(KEY, always) is None
    assert [r.kind for r in answers.rejections(KEY)] == ["unreadable"]


def test_an_answer_that_no_longer_fits_counts_as_absent_and_is_replaced(store: Store) -> None:
    answers = SavedAnswers(store)
    answers.accept(KEY, saved("old"), always)

    def fits(answer: object) -> bool:
        return answer != "old"

    assert answers.accepted(KEY, fits) is None
    assert answers.accept(KEY, saved("new"), fits) == saved("new")
    assert answers.accepted(KEY, fits) == saved("new")


def test_of_many_writers_at_once_all_end_with_one_answer() -> None:
    answers = SavedAnswers(memory())
    answers.store.create(PATH, b"garbage")
    gate = threading.Barrier(8)

    def write(number: int) -> SavedAnswer:
        gate.wait(30)
        return answers.accept(KEY, saved(number), always)

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(write, range(8)))
    assert len({json.dumps(k.answer) for k in kept}) == 1
    assert answers.accepted(KEY, always) == kept[0]


def rejection(kind: str = "AnswerMalformed", item: str = "t1") -> Rejection:
    return Rejection(kind=kind, reason="no JSON", receipt=receipt(item, accepted=False))


def test_rejections_are_listed_in_order(store: Store) -> None:
    answers = SavedAnswers(store)
    assert answers.rejections(KEY) == []
    answers.reject(KEY, 1, rejection("AnswerMalformed"))
    answers.reject(KEY, 2, rejection("AnswerTruncated"))
    assert [r.kind for r in answers.rejections(KEY)] == ["AnswerMalformed", "AnswerTruncated"]
    assert answers.accepted(KEY, always) is None


def test_a_rejection_whose_number_is_taken_gets_the_next_one(store: Store) -> None:
    answers = SavedAnswers(store)
    for item in ("t1", "t2", "t3"):
        answers.reject(KEY, 1, rejection(item=item))
    assert [r.receipt.item for r in answers.rejections(KEY) if r.receipt] == ["t1", "t2", "t3"]


def test_an_unreadable_rejection_counts_and_does_not_hide_those_behind_it(store: Store) -> None:
    answers = SavedAnswers(store)
    store.create(f"answers/ab/{KEY}.rejected-1.json", b"\x00")
    answers.reject(KEY, 2, rejection("ModelRefused"))
    assert [r.kind for r in answers.rejections(KEY)] == ["unreadable", "ModelRefused"]


def test_answers_of_different_keys_do_not_meet(store: Store) -> None:
    answers = SavedAnswers(store)
    other = "cd" + KEY[2:]
    answers.accept(KEY, saved(1), always)
    answers.reject(KEY, 1, rejection())
    assert answers.accepted(other, always) is None
    assert answers.rejections(other) == []


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(), st.lists, max_leaves=8))
def test_any_answer_survives_writing_and_reading(value: object) -> None:
    again = read_record(SavedAnswer, write_record(saved(value)))
    assert again is not None
    assert again.answer == value


def test_a_lone_surrogate_does_not_break_the_writing() -> None:
    record = Rejection(kind="ModelRefused", reason="no \ud83d")
    again = read_record(Rejection, write_record(record))
    assert again is not None
    assert again.reason == "no \ufffd"
