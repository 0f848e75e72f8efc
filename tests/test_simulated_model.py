"""The simulated model: its answers to problems, and the whole behind the port."""

from __future__ import annotations

import asyncio
import json

import pytest
from simulated_calls import ACE, EMPTY, WORLD, ask, book, curated, failed, rule_reflections

from combee_core.base import estimate
from combee_core.calls import Message, Request
from combee_core.errors import UsageError
from combee_core.simulation.day import day
from combee_core.simulation.model import SimulatedModel
from combee_core.simulation.overload import Merger, merged, merged_freely, merged_half
from combee_core.simulation.platitudes import platitude
from combee_core.simulation.responder import respond
from combee_core.simulation.specifics import puzzle_in, stated_in
from combee_core.simulation.world import World
from combee_core.types import Group, Operation, OperationKind, Sample, Update


def test_without_a_playbook_every_answer_is_wrong_and_cites_nothing() -> None:
    for sample in WORLD.sample(50, seed=1):
        said = ask(ACE.solve(EMPTY, sample))
        assert WORLD.score(sample, said["final_answer"]).score == 0.0
        assert said["bullet_ids"] == []


@pytest.mark.parametrize("way", [0, 1, 2])
def test_with_the_rule_in_any_wording_the_answer_is_right_and_that_bullet_is_cited(way: int) -> None:
    for sample in WORLD.sample(20, seed=2):
        rule = WORLD.rule_of(sample.context)
        assert rule is not None
        others = [other.wording(0) for other in WORLD.specifics if other != rule][:5]
        state = book(*others, f"Mind this: {rule.wording(way)} Two decimals.", platitude(rule.topic))
        said = ask(ACE.solve(state, sample))
        assert WORLD.score(sample, said["final_answer"]).score == 1.0
        assert said["bullet_ids"] == ["calc-00006"]


def test_without_the_rule_the_nearest_platitude_is_cited_and_the_answer_is_wrong() -> None:
    (sample,) = WORLD.sample(1, seed=3)
    rule = WORLD.rule_of(sample.context)
    assert rule is not None
    state = book("Be kind to users.", platitude("tender old zebras booked in Oslo"), platitude(f"{rule.wording(0)}"))
    said = ask(ACE.solve(state, sample))
    assert said["bullet_ids"] == ["calc-00003"]
    assert said["final_answer"] == puzzle_in(sample.context).naive  # type: ignore[union-attr]


def test_a_bullet_that_is_neither_rule_nor_platitude_is_not_cited() -> None:
    (sample,) = WORLD.sample(1, seed=3)
    assert ask(ACE.solve(book("Round every answer.", "Check units."), sample))["bullet_ids"] == []


@pytest.mark.parametrize(
    ("problem", "answer"),
    [
        ("Costs of $75,000 and an inventory of $15,000: the turnover?", "75,000"),
        ("From -3.5 to 2 degrees", "-3.5"),
        ("Which of Rate1 and Rate2 rose by 12 points?", "12"),
        ("Which city?", "unknown"),
    ],
)
def test_a_foreign_problem_is_answered_with_its_first_number(problem: str, answer: str) -> None:
    state = book(platitude("anything"))
    said = ask(ACE.solve(state, Sample(id="s", context=problem)))
    assert (said["final_answer"], said["bullet_ids"]) == (answer, [])


def test_all_answers_are_read_by_the_learner_without_anything_set_aside() -> None:
    run = failed(0, cited=("calc-00001",))
    state = book(platitude("x"))
    group = Group(number=2, of=6, entries=tuple(rule_reflections(30)))
    learned = ACE.reflect(state, run).parse(ask(ACE.reflect(state, run)))
    delta = ACE.curate(state, group).parse(ask(ACE.curate(state, group)))
    final = ACE.merge(state, delta.operations).parse(ask(ACE.merge(state, delta.operations)))
    assert not learned.is_nothing
    assert (delta.set_aside, final.set_aside) == ((), ())
    assert not any(op.inferred for op in (*delta.operations, *final.operations))


def test_draws_depend_on_seed_and_prompt_alone() -> None:
    entries_ = rule_reflections(40)
    first = curated(entries_, seed=1)
    assert curated(entries_, seed=2) != first
    curated(entries_[:5], seed=1)
    assert curated(entries_, seed=1) == first


def test_a_conversation_without_a_stage_is_answered_all_the_same() -> None:
    assert respond([Message(role="user", content="ping")], 0) == {"reply": "Ready."}
    assert respond([], 0) == {"reply": "Ready."}


def test_the_model_answers_behind_the_port_without_cost() -> None:
    model = SimulatedModel()
    prompt = ACE.solve(EMPTY, WORLD.sample(1, seed=0)[0]).prompt
    said = asyncio.run(model.complete(Request(prompt=prompt, max_output_tokens=100, seed=4)))
    assert said.text is not None
    assert json.loads(said.text) == respond(prompt.messages, 4)
    assert (model.name, said.model, said.finish) == ("simulated/overload", "simulated/overload", "stop")
    assert said.usage.input_tokens == estimate(prompt.text) == -(-len(prompt.text.encode()) // 4)
    assert (said.usage.cost, said.usage.cached_tokens) == (0.0, None)


def test_an_unknown_model_name_is_refused() -> None:
    assert SimulatedModel("simulated/overload-finer").name == "simulated/overload-finer"
    with pytest.raises(UsageError, match="simulated/overload"):
        SimulatedModel("simulated/gpt")


def learn(seed: int, size: int, *, grouped: bool) -> int:
    """How many rules a day of 120 traces teaches, in batches of `size`."""
    world = World(seed)
    state, runs = EMPTY, day(world, 120, seed)
    for start in range(0, len(runs), size):
        batch = [ACE.reflect(state, run).parse(ask(ACE.reflect(state, run))) for run in runs[start : start + size]]
        step = 7 if grouped else size
        groups = [batch[at : at + step] for at in range(0, len(batch), step)]
        deltas = [
            ACE.curate(state, q := Group(number=n, of=len(groups), entries=tuple(g))).parse(ask(ACE.curate(state, q)))
            for n, g in enumerate(groups, start=1)
        ]
        operations = [op for delta in deltas for op in delta.operations]
        if grouped:
            operations = ACE.merge(state, operations).parse(ask(ACE.merge(state, operations))).operations
        state = ACE.apply(state, Update(operations=tuple(operations)), 1).state
    return len({one.specific for bullet in state.bullets for one in stated_in(bullet.text)})


def test_one_large_call_learns_less_than_small_groups_and_those_less_than_one_trace_at_a_time() -> None:
    seeds = range(3)
    alone = sum(learn(seed, 1, grouped=False) for seed in seeds)
    groups = sum(learn(seed, 40, grouped=True) for seed in seeds)
    naive = sum(learn(seed, 40, grouped=False) for seed in seeds)
    assert alone > groups > 1.2 * naive


@pytest.mark.parametrize(("merger", "most"), [(merged, 60), (merged_half, 30), (merged_freely, 190)])
def test_the_mergers_curve_is_an_argument_for_experiments(merger: Merger, most: int) -> None:
    rules = [WORLD.rule(index) for index in range(200)]
    operations = [Operation(kind=OperationKind.ADD, text=rule.wording(0), sources=("t1",)) for rule in rules]
    prompt = ACE.merge(EMPTY, operations).prompt
    completion = asyncio.run(SimulatedModel(merger=merger).complete(Request(prompt=prompt, max_output_tokens=100)))
    written = json.loads(completion.text or "")["operations"]
    assert most - 1 <= len(written) <= most
