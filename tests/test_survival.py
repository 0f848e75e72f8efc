"""How many distinct insights pass each level."""

from __future__ import annotations

import pytest

from combee_core.simulation.specifics import WAYS, stated_in
from combee_core.simulation.world import World
from combee_core.survival import survival
from combee_core.types import Survival

RULES = list(World(4, 40).specifics)


def tell(text: str) -> list[str]:
    return [word for word in text.split() if word.startswith("rule")]


def test_an_insight_is_a_known_rule_where_somebody_can_tell() -> None:
    insights = ["rule1 in words", "rule2", "rule1 in other words", "rule3 and rule4"]
    levels = [("curate", ["rule1 rule3", "something"]), ("merge", ["rule3", "rule9"])]
    assert survival(insights, levels, tell=tell) == (
        Survival(level="curate", before=4, after=2, estimated=False),
        Survival(level="merge", before=4, after=1, estimated=False),
    )


def test_an_insight_is_estimated_as_a_cluster_of_like_texts() -> None:
    insights = [rule.wording(way) for rule in RULES for way in (0, 1)]
    kept = [rule.wording(2) for rule in RULES[:31]]
    figures = survival(insights, [("curate", kept), ("round 1", kept[:30]), ("merge", kept[:29])])
    assert [(one.level, one.before, one.after) for one in figures] == [
        ("curate", 40, 31),
        ("round 1", 40, 30),
        ("merge", 40, 29),
    ]
    assert all(one.estimated for one in figures)


def test_what_no_reflection_said_does_not_count_as_survived() -> None:
    (figure,) = survival([RULES[0].wording(0)], [("merge", [rule.wording(1) for rule in RULES[1:]])])
    assert (figure.before, figure.after, figure.share) == (1, 0, 0.0)


def test_an_estimate_is_close_to_what_a_world_knows() -> None:
    insights = [rule.wording(n % WAYS) for n, rule in enumerate(RULES * 3)]
    levels = [("curate", insights[::2][:25]), ("merge", insights[::3][:10])]
    known = survival(insights, levels, tell=lambda text: {one.specific for one in stated_in(text)})
    estimated = survival(insights, levels)
    for one, other in zip(known, estimated, strict=True):
        assert (one.before, one.after) == (other.before, other.after)


@pytest.mark.parametrize("can_tell", [True, False])
def test_without_insights_there_are_no_figures(can_tell: bool) -> None:
    assert survival([], [("merge", ["x"])], tell=tell if can_tell else None) == ()


def test_what_the_playbook_said_before_is_not_new_whatever_becomes_of_it() -> None:
    insights, levels = ["rule1", "rule2", "rule3"], [("curate", ["rule2 rule3"]), ("merge", ["rule3"])]
    figures = survival(insights, levels, ["rule3 in words", "rule4"], tell)
    assert [(one.before, one.after, one.known) for one in figures] == [(2, 1, 1), (2, 0, 1)]


def test_where_the_playbook_says_it_all_nothing_is_lost() -> None:
    insights = [rule.wording(0) for rule in RULES]
    (figure,) = survival(insights, [("merge", [])], [rule.wording(1) for rule in RULES])
    assert (figure.before, figure.known, figure.share) == (0, 40, 1.0)


def test_removals_have_no_words_and_nothing_in_is_nothing_lost() -> None:
    assert survival(["a b c d"], [("merge", [""])]) == (Survival(level="merge", before=1, after=0),)
    assert Survival(level="merge", before=0, after=0).share == 1.0
