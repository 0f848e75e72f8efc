"""Every key of a run configuration changes what happens: for each the tests that see it do so.

Name a test here that fails where the code that runs takes the key's default in the place of its value. What can be
checked of that is checked: that the test is there, and says the key.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from command import ROOT

from combee_core.explained import explain
from combee_core.run_file import RunFile

CAPS = "test_settings_obeyed::test_a_run_and_a_day_are_held_at_a_cap_of_each_kind"
BARS = "test_settings_obeyed::test_each_bar_of_the_alarms_is_where_it_is_set"
GROUPS = "test_settings_obeyed::test_groups_are_built_as_the_settings_say"
SENT = "test_client_answers::test_the_request_carries_the_settings"
PUBLISHED = "test_flows::test_an_epoch_publishes_one_version_for_all_its_batches"
SAMPLES = "test_inputs::test_samples_of_several_files_are_one_catalogue"
READ = "test_inputs::test_truth_is_withheld_and_fields_are_mapped_where_the_source_says_so"
NAMED = "test_workshop::test_a_server_from_the_environment_is_part_of_the_models_name"
RETRIED = "test_policies::test_a_stage_has_its_models_retries_and_the_delays_between_them"
NIGHT = "test_night_records::test_a_night_is_of_the_local_day_before_its_scheduled_start"

SEEN_IN: dict[str, tuple[str, ...]] = {
    "playbook": (PUBLISHED,),
    "store": (PUBLISHED,),
    "again": ("test_runs::test_again_starts_a_new_run_after_a_finished_one",),
    "source.uris": (SAMPLES,),
    "source.day": ("test_inputs::test_a_day_keeps_its_own_traces",),
    "source.timezone": ("test_inputs::test_a_trace_of_each_hour_lies_in_exactly_one_day_of_23_or_25_hours",),
    "source.kind": (SAMPLES,),
    "source.limit": ("test_inputs::test_the_limit_keeps_the_first_by_id_and_the_others_are_not_there",),
    "source.ground_truth": (READ, "test_inputs::test_the_judge_of_a_source_withholds_what_the_source_withholds"),
    "source.fields": (READ,),
    "source.scorer": ("test_settings_obeyed::test_the_scorer_of_the_source_judges_a_runs_samples",),
    "settings.learner": ("test_settings_obeyed::test_another_learner_is_looked_for_by_its_name",),
    "settings.prompts": ("test_settings_obeyed::test_a_folder_of_prompts_is_what_the_model_is_shown",),
    "settings.batch_size": ("test_ahead::test_batches_are_cut_as_the_run_would_cut_them",),
    "settings.copies": (GROUPS,),
    "settings.shuffle": (GROUPS,),
    "settings.seed": (GROUPS, "test_settings_obeyed::test_a_model_draws_by_the_seed_of_the_run"),
    "settings.grouping": (GROUPS,),
    "settings.max_group": (GROUPS,),
    "settings.merge": ("test_inline::test_the_number_of_calls_is_that_of_the_plan",),
    "settings.levels": ("test_inline::test_three_levels_merge_in_two_rounds",),
    "settings.embedding": ("test_embedding::test_without_a_model_pieces_of_words_are_counted",),
    "settings.alike": (
        "test_inline::test_what_a_cluster_call_reads_is_for_alike_to_say",
        "test_shard_flows::test_what_is_alike_in_a_flow_is_for_the_setting_to_say",
    ),
    "settings.max_failed": (
        "test_inline::test_how_many_reflections_may_fail_is_for_max_failed_to_say",
        "test_failed_items::test_of_one_trace_that_fails_a_single_line_says_everything",
    ),
    "settings.shard_size": ("test_shard_flows::test_how_items_are_cut_changes_the_tasks_and_nothing_else",),
    "settings.dask": ("test_dask::test_a_scheduler_that_is_not_there_is_wrong_use_with_the_way_out",),
    "settings.on_budget": (
        "test_settings_obeyed::test_at_a_cap_complete_batches_are_published_or_held_as_on_budget_says",
        "test_capped_flows::test_of_a_single_batch_the_finished_groups_are_published_and_the_rest_is_learned_later",
    ),
    "settings.model.model": (NAMED,),
    "settings.model.api_base": (NAMED,),
    "settings.model.temperature": (SENT,),
    "settings.model.max_output_tokens": (SENT,),
    "settings.model.context_tokens": ("test_client_limits::test_a_prompt_that_is_too_large_is_not_sent",),
    "settings.model.use_reasoning": (
        "test_settings_obeyed::test_an_answer_in_the_reasoning_field_is_taken_where_use_reasoning_says_so",
    ),
    "settings.model.timeout": (SENT,),
    "settings.model.concurrency": ("test_limits::test_as_many_calls_are_sent_at_the_start_as_concurrency_says",),
    "settings.model.max_concurrency": (
        "test_client_waits::test_no_more_calls_are_in_flight_than_allowed",
        "test_settings_obeyed::test_twice_as_many_items_are_begun_as_max_concurrency_lets_be_asked",
    ),
    "settings.model.rpm": ("test_limits::test_requests_a_minute_are_honoured",),
    "settings.model.tpm": (
        "test_limits::test_tokens_a_minute_are_reserved_by_estimate_and_corrected_by_what_was_used",
    ),
    "settings.model.processes": (
        "test_limits::test_each_of_several_processes_takes_its_part",
        "test_settings_obeyed::test_of_several_processes_each_has_its_part_of_a_cap",
    ),
    "settings.model.hedge": ("test_hedging::test_a_call_within_its_time_is_sent_once",),
    "settings.model.retries": ("test_client_limits::test_where_no_retry_is_allowed_the_first_cut_is_final", RETRIED),
    "settings.model.retry_delay": (
        "test_inline::test_one_failed_reflection_of_forty_is_named_and_the_batch_goes_on",
        RETRIED,
    ),
    "settings.model.breaker": ("test_client_fallbacks::test_a_breaker_of_0_never_trips",),
    "settings.model.fallbacks": ("test_client_fallbacks::test_a_model_for_one_stage_is_asked_at_no_other",),
    "settings.model.price": ("test_budgets::test_a_price_of_ones_own_is_what_receipts_say",),
    "settings.model.max_waits": ("test_client_waits::test_the_greatest_number_of_requests_is_kept",),
    "settings.model.wait_budget": ("test_client_waits::test_the_waiting_budget_is_for_all_waits_of_a_call_together",),
    "settings.sizes.candidates": ("test_batch_size::test_candidates_are_sorted_and_measured_once",),
    "settings.sizes.tau": ("test_batch_size::test_a_smaller_tau_gives_larger_batches",),
    "settings.sizes.peak": ("test_batch_size::test_the_peak_may_be_the_largest_measured_difference",),
    "settings.sizes.cap": ("test_batch_size::test_the_choice_is_bound_by_the_rule_that_it_names",),
    "settings.sizes.fallback": ("test_batch_size::test_the_fallback_obeys_the_limits_too",),
    "settings.sizes.drift": ("test_sizing::test_how_far_delays_may_leave_the_curve_is_for_drift_to_say",),
    "settings.sizes.anew": (
        "test_settings_obeyed::test_sizes_are_measured_anew_where_that_is_asked_for_though_a_curve_is_known",
    ),
    **{f"settings.alarms.{name}": (BARS,) for name in ("learned", "survival", "silent")},
    "settings.alarms.cost": ("test_alarms::test_cost_is_held_against_its_bar_and_an_unknown_one_is_not_silently_fine",),
    **{
        f"settings.{table}.{cap}": (CAPS,)
        for table in ("budget", "day_budget")
        for cap in ("cost", "tokens", "calls", "minutes")
    },
    "nights.lookback": (NIGHT,),
    "nights.missed": (NIGHT,),
    "schedule.cron": (
        "test_serving::test_the_night_has_the_schedule_and_the_zone_of_its_file_and_nothing_else_has_one",
    ),
}


@cache
def functions(file: str) -> dict[str, ast.FunctionDef]:
    """Those of a test file, by name."""
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def source(file: str, name: str) -> str:
    """A function with its decorators, and those of the same file that it calls, directly or not."""
    known, called, last = functions(file), {name}, set[str]()
    while called != last:
        last = set(called)
        named = {node.id for one in called for node in ast.walk(known[one]) if isinstance(node, ast.Name)}
        called |= named & known.keys()
    return "\n".join(ast.unparse(known[one]) for one in sorted(called))


def test_every_key_is_seen_somewhere() -> None:
    assert SEEN_IN.keys() == {one.name for one in explain(RunFile())}


@pytest.mark.parametrize("key", SEEN_IN)
def test_the_tests_that_see_a_key_are_there_and_set_it(key: str) -> None:
    last = key.rpartition(".")[2]
    for place in SEEN_IN[key]:
        file, _, name = place.partition("::")
        assert name in functions(file), f"{place} is gone"
        assert re.search(rf"\b{last}\b", source(file, name)), f"{place} does not say {last}"
