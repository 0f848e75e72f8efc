"""What prompts weigh: a fixed part, the playbook's bullets, the evidence."""

from __future__ import annotations

import pytest
from builders import ACE, EMPTY, trajectory
from simulated_calls import book

from combee_core.base import estimate
from combee_core.prompt_sizes import PromptSizes
from combee_core.types import Sample, Trajectory

SIZES = PromptSizes(ACE, len)
BOOK = book("Round last.", "Fees are quoted in basis points.")
POLICY = "You are a clerk.\nBe brief."


@pytest.mark.parametrize(
    "run", [trajectory("t1"), trajectory("t2", "Why?", policy=POLICY), trajectory("t3", cited=("a",))]
)
@pytest.mark.parametrize("state", [EMPTY, BOOK])
def test_the_parts_add_up_to_the_prompt_that_will_be_sent(run: Trajectory, state: object) -> None:
    whole = sum(len(message.content) for message in ACE.reflect(state, run).prompt.messages)
    assert SIZES.fixed["reflect"] + SIZES.bullets(state) + SIZES.evidence(run) == whole


def test_a_sample_is_weighed_in_the_generators_prompt() -> None:
    sample = Sample(id="s1", context="What is the ROE of 20 on 100?", target="20")
    whole = sum(len(message.content) for message in ACE.solve(BOOK, sample).prompt.messages)
    assert SIZES.fixed["rollout"] + SIZES.bullets(BOOK) + SIZES.evidence(sample) == whole


def test_an_empty_playbook_has_no_bullets_and_a_longer_one_more() -> None:
    assert SIZES.bullets(EMPTY) == 0
    assert 0 < SIZES.bullets(book("Round last.")) < SIZES.bullets(BOOK)


def test_every_stage_has_a_fixed_part() -> None:
    assert set(SIZES.fixed) == {"rollout", "reflect", "curate", "merge"}
    assert min(SIZES.fixed.values()) > 0


def test_what_prompts_share_is_counted_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return estimate(text)

    sizes = PromptSizes(ACE, count)
    sizes.evidence(trajectory("t0"))
    before = len(counted)
    for number in range(20):
        sizes.evidence(trajectory(f"t{number}", f"Question {number}?"))
    assert len(counted) - before == 20
