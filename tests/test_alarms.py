"""What somebody should look at in the morning: each alarm, its bar, its sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hooks import hook
from hypothesis import given
from hypothesis import strategies as st
from run_records import request

from combee_core.adapters.alarm_hook import hook_url, post
from combee_core.adapters.prefect_alarms import automations
from combee_core.alarms import Alarm, alarms_of, as_list, as_payload
from combee_core.config import AlarmBars, RunSettings
from combee_core.errors import BudgetSpent, CombeeError, ModelAway, RunStopped
from combee_core.outcome import never_begun
from combee_core.records import Accounting, Amounts, Failure, RunResult
from combee_core.types import Survival

BARS = AlarmBars()


def result(learned: int = 0, nothing: int = 0, **more: Any) -> RunResult:
    """A night's end; `fates` are further fates by name."""
    fates = more.pop("fates", {})
    counts = {"learned": learned, "nothing": nothing, **fates}
    table = Accounting(**{"in": sum(counts.values())}, **counts)
    calls = {"reflect": table.total}
    return RunResult(playbook="p", version=1, digest="d", run="r", accounting=table, **{"model_calls": calls, **more})


def kinds(its: RunResult, bars: AlarmBars = BARS) -> list[str]:
    return [alarm.kind for alarm in alarms_of(its, bars)]


def only(its: RunResult, bars: AlarmBars = BARS) -> Alarm:
    (alarm,) = alarms_of(its, bars)
    return alarm


def survived(after: int, before: int = 100) -> tuple[Survival, ...]:
    return (Survival(level="curate", before=before, after=before), Survival(level="merge", before=before, after=after))


def test_a_good_night_raises_none() -> None:
    assert kinds(result(180, 15, fates={"skipped": 5}, survival=survived(60))) == []


def test_a_night_with_no_traces_says_for_which_day() -> None:
    alarm = only(result(note="no traces for 2026-11-29"))
    assert (alarm.kind, alarm.severity) == ("no-traces", "warning")
    assert alarm.message.startswith("p: no traces for 2026-11-29; look whether")


def test_a_failed_run_names_stage_item_cause_and_the_way_on() -> None:
    failure = Failure(stage="curate", item="curate-g02", message="curate-g02 failed: no JSON")
    alarm = only(result(3, fates={"deferred": 17}, error=failure, flow_run_id="f-1"))
    assert (alarm.kind, alarm.severity) == ("failed", "error")
    assert alarm.message == ("p: the run failed at curate: curate-g02 failed: no JSON. Mend it, then combee rerun f-1")


@pytest.mark.parametrize(
    ("stage", "item", "message", "told"),
    [
        ("curate", "curate-g02", "curate-g02 failed: no JSON", "curate: curate-g02 failed: no JSON"),
        ("reflect", "t7", "no JSON", "reflect t7: no JSON"),
        ("budget", "--max-calls", "budget: 9 of 9 calls", "budget: 9 of 9 calls"),
        ("run", "", "two\nlines", "run: two lines"),
    ],
)
def test_where_a_run_failed_is_said_once(stage: str, item: str, message: str, told: str) -> None:
    assert Failure(stage=stage, item=item, message=message).told == told


def test_alarms_in_the_ui_are_a_list_whose_sentences_are_whole() -> None:
    failure = Failure(stage="curate", item="g2", message="a | b\n# no heading " + "x" * 300)
    shown = as_list(alarms_of(result(error=failure, cost=Amounts(total=9.0), flow_run_id="f-1"), AlarmBars(cost=1)))
    first, second = shown.splitlines()
    assert first.startswith("- **error: failed** p: the run failed at curate g2: a &#124; b # no heading x")
    assert first.endswith("Mend it, then combee rerun f-1")
    assert second.startswith("- **warning: cost** p: the run has cost 9.0000 US dollars")


def test_what_a_person_stopped_is_no_alarm_but_a_provider_that_sent_us_away_is() -> None:
    stopped = never_begun(request(), RunStopped("cancelled"))
    assert (stopped.status, kinds(stopped)) == ("stopped", [])
    away = never_begun(request(), ModelAway("429: try again after 07:00 UTC"))
    assert (away.status, kinds(away)) == ("stopped", ["failed"])


def test_a_run_that_a_cap_held_is_told_as_that_with_the_cap_and_the_way_on() -> None:
    alarm = only(never_begun(request(), BudgetSpent("budget: 9 of 9 calls (--max-calls)", "budget", "--max-calls")))
    assert (alarm.kind, alarm.severity) == ("budget", "warning")
    assert "9 of 9 calls (--max-calls); what was paid for is saved: raise the cap" in alarm.message
    assert "failed" not in alarm.message


def test_a_run_that_a_cap_cut_short_is_told_once_and_its_rest_is_not_called_little_learned() -> None:
    its = result(6, fates={"deferred": 94}, status="budget", note="budget: 9 of 9 calls; published: 1 complete batch")
    alarm = only(its)
    assert (alarm.kind, alarm.severity) == ("budget", "warning")
    assert "published: 1 complete batch" in alarm.message


def test_of_traces_that_were_told_of_before_only_cost_and_survival_are_looked_at() -> None:
    its = result(0, 20, fates={"refused": 20}, cost=Amounts(this_run=9.0, total=9.0))
    assert [alarm.kind for alarm in alarms_of(its, AlarmBars(cost=1), again=True)] == ["cost"]


def test_the_message_of_a_failure_is_bounded() -> None:
    failure = Failure(stage="curate", item="", message="x" * 100_000)
    assert len(only(result(error=failure)).message) < 1000


@pytest.mark.parametrize(("nothing", "raised"), [(19, []), (20, ["nothing-learned"]), (300, ["nothing-learned"])])
def test_no_lesson_from_many_traces_is_an_alarm_though_nothing_failed(nothing: int, raised: list[str]) -> None:
    assert kinds(result(0, nothing)) == raised
    assert kinds(result(1, nothing)) == []


def test_traces_that_were_skipped_do_not_count_as_silent() -> None:
    assert "nothing-learned" not in kinds(result(0, 19, fates={"skipped": 100}))


@pytest.mark.parametrize(("settled", "raised"), [(80, []), (79, ["little-learned"])])
def test_the_share_that_was_read_to_the_end_is_held_against_its_bar(settled: int, raised: list[str]) -> None:
    its = result(settled - 10, 10, fates={"failed": 5, "refused": 95 - settled})
    assert kinds(its) == raised


def test_what_was_not_read_to_the_end_is_counted_by_fate() -> None:
    alarm = only(result(10, 2, fates={"failed": 5, "refused": 3, "skipped": 1}))
    assert "12 of 21 traces (57%)" in alarm.message
    assert "1 skipped, 3 refused, 5 failed" in alarm.message


@pytest.mark.parametrize(("after", "raised"), [(20, []), (19, ["survival"])])
def test_survival_is_that_of_the_last_level(after: int, raised: list[str]) -> None:
    assert kinds(result(100, survival=survived(after))) == raised


def test_of_a_handful_of_insights_a_share_says_nothing() -> None:
    assert kinds(result(4, survival=survived(0, before=4))) == []


@pytest.mark.parametrize(
    ("cost", "bar", "word"),
    [
        (Amounts(this_run=1.0, total=2.0), None, None),
        (Amounts(this_run=1.0, total=2.0), 2.0, None),
        (Amounts(this_run=1.0, total=2.01), 2.0, "2.0100 US dollars, the bar is 2"),
        (Amounts(this_run=1.0, total=2.5, at_least=True), 2.0, "at least 2.5000"),
        (Amounts(this_run=None, total=None), 2.0, "price is not known"),
    ],
)
def test_cost_is_held_against_its_bar_and_an_unknown_one_is_not_silently_fine(
    cost: Amounts, bar: float | None, word: str | None
) -> None:
    found = alarms_of(result(10, cost=cost), AlarmBars(cost=bar))
    assert [alarm.kind for alarm in found] == (["cost"] if word else [])
    assert all(word in alarm.message for alarm in found if word)


def test_a_failed_run_may_have_been_too_dear_as_well() -> None:
    failure = Failure(stage="merge", item="", message="x")
    its = result(1, error=failure, cost=Amounts(this_run=9.0, total=9.0))
    assert kinds(its, AlarmBars(cost=1)) == ["failed", "cost"]


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.floats(0, 1), st.integers(1, 50))
def test_an_alarm_is_one_sentence_with_its_figures_and_no_bar_is_crossed_twice(
    learned: int, nothing: int, failed: int, bar: float, silent: int
) -> None:
    its = result(learned, nothing, fates={"failed": failed})
    found = alarms_of(its, AlarmBars(learned=bar, silent=silent))
    assert len({alarm.kind for alarm in found}) == len(found)
    for alarm in found:
        assert alarm.message.startswith("p: ")
        assert "\n" not in alarm.message
        assert json.loads(json.dumps(as_payload(alarm, its)))["run"] == "r"


def test_bars_are_no_part_of_what_a_run_is_and_follow_the_present_invocation() -> None:
    strict = RunSettings(alarms=AlarmBars(learned=1.0))
    assert strict.identity() == RunSettings().identity()
    assert RunSettings().placed_as(strict).alarms.learned == 1.0


def test_a_failed_run_sets_off_one_automation_and_not_two() -> None:
    triggers = {one.name: one.trigger for one in automations({"type": "do-nothing"}, 600)}
    assert triggers["combee: a run failed"]["expect"] == ["prefect.flow-run.Crashed", "prefect.flow-run.TimedOut"]
    assert triggers["combee: an alarm"]["expect"] == ["combee.alarm.*"], "a failed run says so itself"


# the webhook


def test_an_alarm_is_posted_as_json_with_what_it_is_about() -> None:
    its = result(note="no traces for 2026-11-29", flow_run_id="f-1")
    with hook() as (url, got):
        post(url, as_payload(only(its), its))
    assert got[0]["kind"] == "no-traces"
    assert (got[0]["playbook"], got[0]["flow_run_id"]) == ("p", "f-1")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/secret-path", "no-address/secret-path"])
def test_a_hook_that_is_not_there_is_an_error_that_does_not_show_its_address(url: str) -> None:
    with pytest.raises(CombeeError, match="COMBEE_ALARM_URL") as caught:
        post(url, {})
    assert "secret-path" not in str(caught.value)


def test_a_hook_that_refuses_is_an_error() -> None:
    with hook(500) as (url, _), pytest.raises(CombeeError, match="500"):
        post(url, {})


def test_without_the_variable_there_is_no_hook() -> None:
    assert hook_url({}) is None
    assert hook_url({"COMBEE_ALARM_URL": ""}) is None
    assert hook_url({"COMBEE_ALARM_URL": "http://x"}) == "http://x"
