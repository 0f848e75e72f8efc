"""Runs of tau-bench: what is read, what is withheld, and the sentence that says what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import POLICY, SEAT, ask, call, file, say, tau_file, tau_run

from combee_core.ports import ReadOptions
from combee_core.traces.expected import CHANGING, Change, first_difference
from combee_core.traces.tau_bench import READER
from combee_core.types import TraceFile, Trajectory, Unread, sha256

REAL = Path(__file__).parents[2] / "shared/traces/tau_bench/gpt-4o-airline-even-tasks.json"
BLIND = ReadOptions(ground_truth=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def read(source: TraceFile, options: ReadOptions = ReadOptions()) -> list[Trajectory]:  # noqa: B008 - frozen
    items = list(READER.read(source, options))
    assert not [item for item in items if isinstance(item, Unread)]
    return [item for item in items if isinstance(item, Trajectory)]


def feedback(talk=(), expected=(), outputs=(), reward=0.0, **changes) -> str:
    (run,) = read(tau_file([tau_run(talk, expected, outputs, reward, **changes)]))
    return run.outcome.feedback


def test_policy_task_and_steps_are_kept_apart():
    talk = [*call("find_train", {"to": "Lund"}, "NL14"), say("NL14 leaves at 9."), ask("Thanks")]
    (run,) = read(tau_file([tau_run(talk)]))
    assert run.policy == POLICY
    assert run.task == "A seat to Lund, please"
    assert [step.role for step in run.steps] == ["assistant", "tool", "assistant", "user"]
    assert run.steps[0].calls[0].name == "find_train"
    assert json.loads(run.steps[0].calls[0].arguments) == {"to": "Lund"}
    assert run.steps[1].name == "find_train"


def test_the_id_holds_task_trial_and_the_hash_of_the_conversation():
    given = tau_run([say("hello")], task_id=12, trial=3)
    (run,) = read(tau_file([given]))
    assert run.trace_id == f"tau-12.3-{sha256(given['traj'])[:8]}"
    (other,) = read(tau_file([tau_run([say("hello!")], task_id=12, trial=3)]))
    assert other.trace_id != run.trace_id


def test_the_hidden_script_is_metadata_and_stays_out_of_what_a_model_may_see():
    (run,) = read(tau_file([tau_run([say("hello")])]))
    assert run.metadata["instruction"] == "You are Ada. You want a seat."
    visible = run.model_dump_json(exclude={"metadata"})
    assert "You are Ada" not in visible


def test_the_file_tells_no_time():
    (run,) = read(tau_file([tau_run([say("hello")])]))
    assert run.when is None


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
    assert (
        feedback([say("Done.")], [(tool, {"x": 1})], reward=1.0)
        == "every expected change was made, and no other"
    )
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


def test_another_way_to_a_right_end_is_not_called_wrong():
    (run,) = read(tau_file([tau_run([say("ok")], [("book_seat", SEAT)], reward=1.0)]))
    assert run.outcome.label == "right"
    assert run.outcome.feedback == "what was expected was reached in another way"


def test_a_right_run_and_a_wrong_run_have_their_words():
    right, wrong = read(tau_file([tau_run([say("a")], reward=1.0), tau_run([say("b")], reward=0)]))
    assert (right.outcome.score, right.outcome.label) == (1.0, "right")
    assert (wrong.outcome.score, wrong.outcome.label) == (0.0, "wrong")
    assert {right.outcome.source, wrong.outcome.source} == {"ground_truth"}


def test_without_ground_truth_the_feedback_is_the_reward_and_nothing_more():
    (run,) = read(tau_file([tau_run([say("Done.")], [("book_seat", SEAT)], ["327"])]), BLIND)
    assert run.outcome.feedback == "reward 0"
    assert run.outcome.source == "reward"
    assert run.outcome.label == "wrong"
    assert "NL14" not in run.model_dump_json()
    assert "327" not in run.model_dump_json()


def test_without_reward_detail_the_label_says_so_and_the_feedback_why():
    run = tau_run([say("Let me see.")])
    run["info"]["reward_info"] = None
    (read_run,) = read(tau_file([run]))
    assert read_run.outcome.label == "no reward detail"
    assert read_run.outcome.score == 0.0
    assert read_run.outcome.feedback.endswith("it stopped after 1 agent turns, before the conversation ended")


@pytest.mark.parametrize("reward", ["n/a", [1], {"a": 1}, float("nan"), 10**400])
def test_a_reward_that_is_no_number_is_no_score_and_is_told(reward):
    (run,) = read(tau_file([tau_run([say("ok")], reward=reward)]))
    assert run.outcome.score is None
    assert run.outcome.label.startswith("score is not a number")
    assert run.outcome.source == "none"


def test_a_missing_reward_is_not_zero():
    (run,) = read(tau_file([tau_run([say("ok")], reward=None)]))
    assert run.outcome.score is None
    assert run.outcome.feedback == ""


def test_a_run_without_a_task_keeps_its_reward():
    (run,) = read(tau_file([tau_run([say("ok")], info=None)]))
    assert (run.outcome.score, run.outcome.feedback, run.outcome.source) == (0.0, "reward 0", "reward")


def test_a_run_in_which_the_agent_did_nothing_is_marked():
    (run,) = read(tau_file([tau_run()]))
    assert run.outcome.status == "no_agent_activity"


def test_a_run_that_ended_in_an_exception_is_marked():
    run = tau_run([say("hm")])
    run["info"]["error"] = "connection lost"
    assert read(tau_file([run]))[0].outcome.status == "error"


def test_runs_before_a_cut_are_kept_and_the_cut_is_named():
    whole = tau_file([tau_run([say(str(n))], task_id=n) for n in range(3)])
    cut = file(whole.data[:-40], "day/runs.json")
    *runs, rest = READER.read(cut, ReadOptions())
    assert [run.trace_id[:5] for run in runs] == ["tau-0", "tau-1"]
    assert isinstance(rest, Unread)
    assert rest.where == "day/runs.json#2"
    assert rest.trace_id
    assert "cut or damaged" in rest.reason


def test_entries_that_are_no_runs_are_named_and_the_rest_is_read():
    mixed = tau_file(
        [tau_run([say("a")]), 5, {"task_id": 1}, {"task_id": 2, "traj": ["x"]}, tau_run([say("b")])]
    )
    items = list(READER.read(mixed, ReadOptions()))
    lost = [item for item in items if isinstance(item, Unread)]
    assert len(items) == 5
    assert [item.where[-2:] for item in lost] == ["#1", "#2", "#3"]
    assert all(item.trace_id for item in lost)


def test_other_files_are_not_recognised():
    for content in ("", "[]", "[1, 2]", '{"traj": []}', '[{"task_id": 1}]', "[" * 5000, "\xff\xfe", "[{]"):
        assert not READER.recognises(file(content))


@given(st.lists(st.sampled_from(["book_a", "cancel_b", "get_c"]), max_size=5), st.data())
def test_making_exactly_what_is_expected_in_any_order_leaves_no_difference(tools, data):
    wanted = [Change(tool, {"n": data.draw(json_values)}) for tool in tools]
    talk = [m for w in data.draw(st.permutations(wanted)) for m in call(w.name, w.arguments)]
    (run,) = read(tau_file([tau_run([*talk, say("done")])]))
    assert first_difference(wanted, [], run.steps) == ""


@given(
    st.lists(st.tuples(st.sampled_from(["book_a", "cancel_b"]), json_values), max_size=4, unique_by=str),
    st.data(),
)
def test_leaving_one_expected_change_out_is_always_told(wanted, data):
    changes = [Change(tool, {"n": value}) for tool, value in wanted]
    done = changes[1:]
    (run,) = read(tau_file([tau_run([m for c in done for m in call(c.name, c.arguments)])]))
    told = first_difference(changes, [], run.steps)
    assert told.startswith(f"expected {changes[0].name}") if changes else told == ""


@given(json_values)
def test_no_entry_of_any_shape_raises(value):
    for entry in (value, tau_run(info=value), tau_run(traj=value), tau_run(task_id=value, traj=[say("a")])):
        list(READER.read(tau_file([entry]), ReadOptions()))


@pytest.fixture(scope="module")
def real() -> TraceFile:
    if not REAL.exists():
        pytest.skip(f"no real runs at {REAL}")
    return file(REAL.read_bytes(), "real.json")


def test_every_wrong_real_run_has_a_specific_sentence_and_every_right_one_agrees(real):
    runs = read(real)
    assert Counter(run.outcome.score for run in runs) == {1.0: 49, 0.0: 51}
    assert len({run.trace_id for run in runs}) == 100
    right = {run.outcome.feedback for run in runs if run.outcome.score == 1}
    assert right == {"every expected change was made, and no other"}
    wrong = [run.outcome.feedback for run in runs if run.outcome.score == 0]
    kinds = {"never called": 20, "argument": 19, "unexpected": 8, "untold": 2, "cut": 2}
    assert Counter(map(kind, wrong)) == kinds
    assert all(len(sentence) > 20 for sentence in wrong)
    assert not [sentence for sentence in wrong if sentence.endswith("yet reward 0")]


def test_the_two_real_runs_without_reward_detail_are_labelled(real):
    labels = Counter(run.outcome.label for run in read(real))
    assert labels == {"right": 49, "wrong": 49, "no reward detail": 2}


def test_real_runs_without_ground_truth_name_no_expected_value(real):
    assert {run.outcome.feedback for run in read(real, BLIND)} == {"reward 0", "reward 1"}


def kind(sentence: str) -> str:
    marks = {
        "never called": "never called",
        "argument": "but it was called",
        "unexpected": "nothing like it",
        "untold": "did not tell",
        "cut": "it stopped after",
    }
    return next((name for name, mark in marks.items() if mark in sentence), "?")


def test_only_four_kinds_of_tools_change_data():
    assert CHANGING == ("book_", "update_", "cancel_", "send_")
