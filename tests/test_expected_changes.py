"""The sentence that says what a run should have changed and did not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import SEAT, ask, call, say, tau_file, tau_run

from combee_core.ports import ReadOptions
from combee_core.traces.expected import CHANGING, Change, first_difference
from combee_core.traces.tau_bench import READER
from combee_core.types import Trajectory

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def read(run: dict) -> Trajectory:
    (item,) = READER.read(tau_file([run]), ReadOptions())
    assert isinstance(item, Trajectory), item
    return item


def feedback(talk=(), expected=(), outputs=(), reward=0.0) -> str:
    return read(tau_run(talk, expected, outputs, reward)).outcome.feedback


def test_a_missing_call_is_told_with_its_arguments():
    assert feedback([say("Done.")], [("cancel_seat", {"booking": "B7"})]) == (
        'expected cancel_seat(booking="B7") but it was never called'
    )


def test_the_first_differing_argument_is_told():
    made = SEAT | {"pay": ["card_9"], "fare": "flex"}
    assert feedback(call("book_seat", made), [("book_seat", SEAT)]) == (
        'expected book_seat with pay=["voucher_1", "card_9"] but it was called with pay=["card_9"]'
    )


def test_of_several_calls_the_closest_is_compared():
    far = {"train": "NL2", "day": "2026-04-01", "fare": "basic", "pay": []}
    near = SEAT | {"day": "2026-03-06"}
    talk = [*call("book_seat", far), *call("book_seat", near)]
    assert feedback(talk, [("book_seat", SEAT)]) == (
        'expected book_seat with day="2026-03-05" but it was called with day="2026-03-06"'
    )


def test_an_argument_on_one_side_only_is_told_as_absent():
    short = {"train": "NL14"}
    long = {"train": "NL14", "meal": "none"}
    assert feedback(call("book_seat", short), [("book_seat", long)]) == (
        'expected book_seat with meal="none" but it was called without meal'
    )
    assert feedback(call("book_seat", long), [("book_seat", short)]) == (
        'expected book_seat without meal but it was called with meal="none"'
    )


def test_a_call_that_serves_one_expectation_is_not_held_against_another():
    talk = call("cancel_seat", {"booking": "B1"})
    wanted = [("cancel_seat", {"booking": "B1"}), ("cancel_seat", {"booking": "B2"})]
    assert feedback(talk, wanted) == 'expected cancel_seat(booking="B2") but it was never called'


def test_an_unexpected_change_is_told():
    talk = [*call("book_seat", SEAT), *call("cancel_seat", {"booking": "B7"})]
    assert feedback(talk, [("book_seat", SEAT)]) == (
        'called cancel_seat(booking="B7") although nothing like it was expected'
    )


def test_a_change_made_twice_is_told_as_such():
    talk = call("send_voucher", {"amount": 5}) * 2
    assert feedback(talk, [("send_voucher", {"amount": 5})]) == (
        "called send_voucher(amount=5) more often than expected"
    )


def test_a_missing_call_comes_before_an_unexpected_one_and_both_before_outputs():
    talk = [*call("cancel_seat", {"booking": "B7"}), say("ok")]
    wanted = [("book_seat", SEAT)]
    assert feedback(talk, wanted, ["327"]).startswith("expected book_seat(")
    assert feedback(talk, [], ["327"]).startswith("called cancel_seat(")
    assert feedback([say("ok")], [], ["327", "12"]) == "did not tell the user: 327, 12"


def test_an_output_counts_as_told_whatever_its_commas_and_case():
    assert feedback([say("It is 1,786 kronor on CAR B")], [], ["1786", "car b"], 0.0) == (
        "all expected calls and outputs found, yet reward 0"
    )


def test_an_output_that_only_a_tool_or_the_user_said_is_untold():
    talk = [*call("find_price", {}, "327"), ask("is it 327?"), say("Yes.")]
    assert feedback(talk, [], ["327"]) == "did not tell the user: 327"


@pytest.mark.parametrize(
    "tool", ["get_seat", "list_trains", "search_trains", "think", "calculate", "transfer_to_person"]
)
def test_calls_that_change_nothing_are_neither_expected_nor_unexpected(tool):
    assert feedback([say("Done.")], [(tool, {"x": 1})], reward=1.0) == "every expected change was made, and no other"
    assert feedback(call(tool, {"x": 1}), [], reward=1.0) == "every expected change was made, and no other"


def test_a_call_that_the_tool_refused_changed_nothing():
    refused = call("book_seat", SEAT, "Error: no seat left")
    assert feedback(refused, [("book_seat", SEAT)]).endswith(
        "and it was called so, but to no effect (the tool answered: Error: no seat left)"
    )
    assert feedback([*refused, say("No seat.")], []) == "all expected calls and outputs found, yet reward 0"


def test_results_belong_to_calls_by_place_because_ids_repeat():
    talk = [*call("book_seat", SEAT, "Error: sold out"), *call("book_seat", SEAT, "booked")]
    assert feedback(talk, [("book_seat", SEAT)], reward=1.0) == "every expected change was made, and no other"


def test_arguments_are_compared_as_json_not_as_text():
    spaced = json.dumps(dict(reversed(SEAT.items())), indent=2)
    assert feedback(call("book_seat", spaced), [("book_seat", SEAT)], reward=1.0).startswith("every expected")


def test_arguments_that_are_no_json_differ_and_do_not_raise():
    assert "but it was called" in feedback(call("book_seat", '{"train": "NL1'), [("book_seat", SEAT)])


@given(st.lists(st.sampled_from(["book_a", "cancel_b", "get_c"]), max_size=5), st.data())
def test_making_exactly_what_is_expected_in_any_order_leaves_no_difference(tools, data):
    wanted = [Change(tool, {"n": data.draw(json_values)}) for tool in tools]
    talk = [m for w in data.draw(st.permutations(wanted)) for m in call(w.name, w.arguments)]
    run = read(tau_run([*talk, say("done")]))
    assert first_difference(wanted, [], run.steps) == ""


@given(
    st.lists(st.tuples(st.sampled_from(["book_a", "cancel_b"]), json_values), max_size=4, unique_by=str),
    st.data(),
)
def test_leaving_one_expected_change_out_is_always_told(wanted, data):
    changes = [Change(tool, {"n": value}) for tool, value in wanted]
    done = changes[1:]
    run = read(tau_run([m for c in done for m in call(c.name, c.arguments)]))
    told = first_difference(changes, [], run.steps)
    assert told.startswith(f"expected {changes[0].name}") if changes else told == ""


def test_only_four_kinds_of_tools_change_data():
    assert CHANGING == ("book_", "update_", "cancel_", "send_")
