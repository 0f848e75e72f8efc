"""Settings in action, from the workshop of a run on: what happens is other than where they are not given."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asking import GOOD, ask, client
from curves import law
from prefect.logging import disable_run_logger

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, Workshop, open_workshop
from combee_core.alarms import alarms_of
from combee_core.calls import Completion
from combee_core.config import AlarmBars, RunRequest, RunSettings, Source
from combee_core.curate import curate
from combee_core.errors import AnswerEmpty, BudgetSpent, UsageError
from combee_core.measured import Measured, Subject
from combee_core.records import Accounting, Batch, Cut, Item, RunResult, State
from combee_core.reflect import reflect
from combee_core.runs import Run, find_or_plan
from combee_core.simulation.day import day
from combee_core.simulation.world import World
from combee_core.sizing import first_sizing
from combee_core.testing import ScriptedModel
from combee_core.types import Curated, Group, Reflected, Reflection, Sample, Survival, Trajectory, Update
from tasks import stages
from tasks.entry import prompts_of, within_budget

TRACES = day(World(0), 12, 0)


def place(source: Source | None = None, **settings: Any) -> Place:
    """A run on twelve simulated traces, in one batch that is recorded, in an empty store."""
    store = open_store(f"memory://{uuid.uuid4().hex}")
    request = RunRequest(
        store=store.uri, source=source or Source(uris=("/traces",)), settings=RunSettings.model_validate(settings)
    )
    run = find_or_plan(store, request, [Item(id=one.trace_id, digest=one.digest) for one in TRACES], (), 0)
    run.start_batch(Batch(number=1, trajectories=TRACES))
    return Place(store=store.uri, run=run.key, number=1)


def workshop(source: Source | None = None, **settings: Any) -> Workshop:
    """The workshop of such a run."""
    return open_workshop(place(source, **settings))


# who learns, from what it is shown


def test_another_learner_is_looked_for_by_its_name() -> None:
    with pytest.raises(UsageError, match="no learner is called 'other'"):
        _ = workshop(learner="other").learner


def test_a_folder_of_prompts_is_what_the_model_is_shown(tmp_path: Path) -> None:
    (tmp_path / "reflector.md").write_text("Our own words. <<playbook>> <<policy>>")
    shop = workshop(prompts=str(tmp_path))
    assert "Our own words." in shop.learner.reflect(shop.learner.empty(), TRACES[0]).prompt.text
    assert prompts_of(shop.settings) == shop.learner.fingerprint != prompts_of(RunSettings()), "it is another run"


def test_the_scorer_of_the_source_judges_a_runs_samples() -> None:
    sample = Sample(id="s", context="How much?", target="20")
    scores = [
        workshop(Source(kind="samples", scorer=name)).scorer(sample, "20.0").score for name in ("exact", "number")
    ]
    assert scores == [0.0, 1.0]


# groups


def groups(**settings: Any) -> tuple[Group, ...]:
    """What the stage makes of forty reflections."""
    taught = (Reflection(trace_id=f"t{n:02d}", key_insight=f"Rule {n}.") for n in range(40))
    reflected = [Reflected(trace_id=one.trace_id, fate="insight", reflection=one) for one in taught]
    return stages.shuffle.fn(place(**settings), reflected)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        ({}, {"copies": 3}),
        ({}, {"seed": 7}),
        ({}, {"grouping": "bounded"}),
        ({"grouping": "bounded"}, {"max_group": 7}),
        ({"grouping": "paper"}, {"shuffle": "spread"}),
    ],
)
def test_groups_are_built_as_the_settings_say(base: dict[str, Any], change: dict[str, Any]) -> None:
    plain, changed = groups(**base), groups(**base, **change)
    assert plain == groups(**base)
    assert changed != plain


def test_a_model_draws_by_the_seed_of_the_run() -> None:
    """The stand-in's curator leaves out some of what a large group teaches: which, is drawn."""

    def taught(seed: int) -> str:
        shop = workshop(seed=seed)
        state = shop.state_before(1)
        reflected = shop.work(TRACES, lambda one: reflect(one, state, **shop.tools))
        entries = tuple(one.reflection for one in reflected if isinstance(one, Reflected) and one.reflection)
        (curated,) = shop.work([Group(number=1, of=1, entries=entries)], lambda one: curate(one, state, **shop.tools))
        assert isinstance(curated, Curated)
        return curated.delta.model_dump_json()

    assert taught(0) == taught(0)
    assert len({taught(seed) for seed in range(4)}) > 1


def test_results_of_another_seed_are_not_taken_for_ones_own() -> None:
    keys = {seed: workshop(seed=seed).task_keys("curate", 1, ["a group"]) for seed in (0, 7)}
    assert keys[0] == workshop(seed=0).task_keys("curate", 1, ["a group"])
    assert keys[0] != keys[7]


# caps


@pytest.mark.parametrize("table", ["budget", "day_budget"])
@pytest.mark.parametrize(("cap", "most"), [("cost", 1e-6), ("tokens", 1), ("calls", 1), ("minutes", 1e-9)])
def test_a_run_and_a_day_are_held_at_a_cap_of_each_kind(table: str, cap: str, most: float) -> None:
    shop = workshop(model={"price": (1.0, 2.0)}, **{table: {cap: most}})
    with pytest.raises(BudgetSpent) as held:
        shop.work(TRACES, lambda one: reflect(one, shop.state_before(1), **shop.tools))
    assert held.value.item == f"--max-{cap}{'-per-day' if table == 'day_budget' else ''}"
    assert shop.client.ledger.calls(shop.run.key)["reflect"] == (cap == "calls")


def test_of_several_processes_each_has_its_part_of_a_cap() -> None:
    def sent(processes: int) -> int:
        shop = workshop(model={"processes": processes}, budget={"calls": 8})
        with pytest.raises(BudgetSpent):
            shop.work(TRACES, lambda one: reflect(one, shop.state_before(1), **shop.tools))
        return shop.client.ledger.calls(shop.run.key)["reflect"]

    assert 8 == sent(1) > sent(7) > 0


def test_twice_as_many_items_are_begun_as_max_concurrency_lets_be_asked() -> None:
    begun = most = 0

    async def look(_: Trajectory) -> None:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        await asyncio.sleep(0.001)
        begun -= 1

    workshop(model={"max_concurrency": 2}).work(TRACES, look)
    assert most == 4


def test_at_a_cap_complete_batches_are_published_or_held_as_on_budget_says() -> None:
    def capped(**settings: Any) -> Run:
        shop = workshop(**settings)
        shop.run.save_state(State(number=1, state=shop.learner.dump(shop.learner.empty()), update=Update(), groups=1))
        with disable_run_logger(), within_budget(shop):
            raise BudgetSpent("budget: all of it", "budget", "--max-calls")
        return shop.run

    assert capped(on_budget="publish").cut() == Cut(batches=1, reason="budget: all of it")
    with pytest.raises(BudgetSpent) as held:
        capped(on_budget="hold")
    assert held.value.held == 1


# answers


def test_an_answer_in_the_reasoning_field_is_taken_where_use_reasoning_says_so() -> None:
    said = Completion(text="", reasoning='{"value": 42}')
    assert ask(client(ScriptedModel([said]), use_reasoning=True)).value == GOOD["value"]
    with pytest.raises(AnswerEmpty):
        ask(client(ScriptedModel([said])))


# batch sizes


def test_sizes_are_measured_anew_where_that_is_asked_for_though_a_curve_is_known() -> None:
    known = Measured(
        subject=Subject(learner="ace", prompts="f", model="m", source=("traces",)),
        total=500,
        run="earlier",
        when=datetime(2026, 3, 1, tzinfo=UTC),
        observations=tuple(law(lambda n: 20 * n**0.25)),
    )
    taken, _ = first_sizing(RunSettings(), 500, known)
    again, _ = first_sizing(RunSettings.model_validate({"sizes": {"anew": True}}), 500, known)
    assert (taken.profile, again.profile) == ((), (5, 10, 20, 40, 80))


# alarms


@pytest.mark.parametrize(
    ("bar", "low", "high", "kind"),
    [
        ("learned", 0.4, 0.6, "little-learned"),
        ("survival", 0.4, 0.6, "survival"),
        ("silent", 25, 10, "nothing-learned"),
    ],
)
def test_each_bar_of_the_alarms_is_where_it_is_set(bar: str, low: float, high: float, kind: str) -> None:
    learned = 0 if bar == "silent" else 10
    table = Accounting(**{"in": 20}, learned=learned, failed=10, nothing=10 - learned)
    survived = (Survival(level="curate", before=100, after=50),)
    result = RunResult(playbook="p", version=1, digest="d", run="r", accounting=table, survival=survived)

    def raised(value: float) -> set[str]:
        return {alarm.kind for alarm in alarms_of(result, AlarmBars.model_validate({bar: value}))}

    assert kind in raised(high)
    assert kind not in raised(low)
