"""Simulated time."""

from __future__ import annotations

import pytest

from combee_core.calls import Receipt
from combee_core.simulation.delays import MEDIANS, delay, minutes


def receipt(stage: str, item: str, sha: str, attempt: int = 1) -> Receipt:
    return Receipt(stage=stage, item=item, prompt_sha=sha, attempt=attempt, accepted=True, model="m")


def test_delays_are_lognormal_around_the_medians_and_rollouts_take_none() -> None:
    for stage in ("reflect", "curate", "merge"):
        seconds = sorted(delay(0, stage, str(n)) for n in range(2_001))
        assert seconds[1_000] == pytest.approx(MEDIANS[stage], rel=0.05)
        assert seconds[1_683] / seconds[1_000] == pytest.approx(2.718**0.5, rel=0.07)
    assert delay(0, "rollout", "a") == 0.0


def test_a_delay_is_a_pure_function_of_its_call() -> None:
    assert delay(1, "merge", "a", 1) == delay(1, "merge", "a", 1)
    assert (
        len(
            {
                delay(1, "merge", "a"),
                delay(1, "merge", "a", 2),
                delay(2, "merge", "a"),
                delay(1, "merge", "b"),
            }
        )
        == 4
    )


def test_simulated_minutes_add_the_slowest_of_each_stage_over_the_iterations() -> None:
    reflections = [receipt("reflect", f"t{n}", f"r{n}") for n in range(5)]
    curates = [receipt("curate", "curate-g01", "a"), receipt("curate", "curate-g02", "b")]
    again = receipt("curate", "curate-g02", "b", attempt=2)
    merging = receipt("merge", "merge", "m")
    slowest_reflect = max(delay(0, "reflect", f"r{n}") for n in range(5))
    second_group = delay(0, "curate", "b") + delay(0, "curate", "b", 2)
    slowest_curate = max(delay(0, "curate", "a"), second_group)
    first = [*reflections, *curates, again, merging, receipt("rollout", "s", "x")]
    second = [receipt("reflect", "t9", "r9")]
    expected = slowest_reflect + slowest_curate + delay(0, "merge", "m") + delay(0, "reflect", "r9")
    assert minutes([first, second]) == pytest.approx(expected / 60)
    assert minutes([]) == 0


def test_the_rounds_of_a_merge_follow_each_other() -> None:
    first = [receipt("merge", f"merge-m{n:02d}", f"m{n}") for n in range(1, 10)]
    later = [receipt("merge", "merge-r2-m10", "x"), receipt("merge", "merge-r2-m11", "y")]
    slowest = [max(delay(0, "merge", one.prompt_sha) for one in calls) for calls in (first, later)]
    last = receipt("merge", "merge-r3-m12", "z")
    assert minutes([[*first, *later, last]]) == pytest.approx((sum(slowest) + delay(0, "merge", "z")) / 60)


def test_a_trace_that_is_named_like_a_round_is_none() -> None:
    named = [receipt("reflect", "merge-r2-m01", "a"), receipt("reflect", "t2", "b")]
    assert minutes([named]) == pytest.approx(max(delay(0, "reflect", "a"), delay(0, "reflect", "b")) / 60)
