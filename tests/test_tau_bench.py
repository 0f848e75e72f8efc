"""Runs of tau-bench: what is read and what is withheld."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import AIRLINE, needs
from trace_samples import POLICY, SEAT, ask, call, file, say, tau_file, tau_run

from combee_core.base import content_hash
from combee_core.ports import ReadOptions
from combee_core.traces.tau_bench import READER
from combee_core.types import TraceFile, Trajectory, Unread

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
    assert run.trace_id == f"tau-12.3-{content_hash(given['traj'])[:8]}"
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
    mixed = tau_file([tau_run([say("a")]), 5, {"task_id": 1}, {"task_id": 2, "traj": ["x"]}, tau_run([say("b")])])
    items = list(READER.read(mixed, ReadOptions()))
    lost = [item for item in items if isinstance(item, Unread)]
    assert len(items) == 5
    assert [item.where[-2:] for item in lost] == ["#1", "#2", "#3"]
    assert all(item.trace_id for item in lost)


def test_other_files_are_not_recognised():
    for content in ("", "[]", "[1, 2]", '{"traj": []}', '[{"task_id": 1}]', "[" * 5000, "\xff\xfe", "[{]"):
        assert not READER.recognises(file(content))


@given(json_values)
def test_no_entry_of_any_shape_raises(value):
    for entry in (value, tau_run(info=value), tau_run(traj=value), tau_run(task_id=value, traj=[say("a")])):
        list(READER.read(tau_file([entry]), ReadOptions()))


@pytest.fixture(scope="module")
def real() -> TraceFile:
    return file(AIRLINE.read_bytes(), "real.json")


@needs(AIRLINE)
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


@needs(AIRLINE)
def test_the_two_real_runs_without_reward_detail_are_labelled(real):
    labels = Counter(run.outcome.label for run in read(real))
    assert labels == {"right": 49, "wrong": 49, "no reward detail": 2}


@needs(AIRLINE)
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
