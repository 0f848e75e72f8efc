"""What a rerun will do, read off the store alone: nothing is asked, and every answer that is there is counted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from asking import client, memory
from builders import ACE, EMPTY
from lessons import answer, trajectory

from combee_core.caps import uses
from combee_core.config import Budget, RunSettings
from combee_core.curate import curate
from combee_core.history import Seen
from combee_core.ports import Store
from combee_core.records import Batch, Failure
from combee_core.reflect import reflect
from combee_core.resuming import Reader, Stage, Standing, explanation
from combee_core.scoring import SCORERS
from combee_core.shuffle import batch_seed, shuffle
from combee_core.spent import Spent
from combee_core.testing.scripted import ScriptedModel
from combee_core.types import Sample

BATCH = Batch(number=1, trajectories=tuple(trajectory(number) for number in range(1, 10)))
SETTINGS = RunSettings(batch_size=9)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def seen(state: str = "failed", **changes: object) -> Seen:
    given = {"run": "a" * 20, "playbook": "p", "what": "2026-03-02", "traces": 12, "began": NOON}
    return Seen.model_validate({**given, "state": state, "batches_done": 1, "batches_planned": 3, **changes})


def read(store: Store, batch: Batch = BATCH) -> tuple[dict[str, Stage], ScriptedModel]:
    model = ScriptedModel(answer)
    reader = Reader(ACE, client(model, store), SETTINGS, SCORERS["exact"], "run")
    return asyncio.run(reader.read(batch, EMPTY)), model


def answered(store: Store, reflections: int, groups: int = 0) -> None:
    """So many reflections and groups of the batch have a saved answer."""

    async def ask() -> None:
        own = client(ScriptedModel(answer), store)
        tools = {"state": EMPTY, "learner": ACE, "client": own, "run": "run"}
        made = [await reflect(one, **tools) for one in BATCH.trajectories[:reflections]]
        insights = [one.reflection for one in made if one.reflection]
        for group in shuffle(insights, SETTINGS, batch_seed(SETTINGS.seed, 1))[:groups]:
            await curate(group, **tools)

    asyncio.run(ask())


def test_a_batch_of_which_nothing_is_saved_asks_about_all_of_it() -> None:
    stages, model = read(memory())
    assert stages["reflections"].of == 9
    assert stages["reflections"].saved == 0
    assert "groups" not in stages, "they are not known before all reflections are"
    assert model.requests == []


def test_what_is_missing_is_named_and_the_rest_is_saved() -> None:
    store = memory()
    answered(store, 6)
    stages, model = read(store)
    assert stages["reflections"] == Stage(saved=6, of=9, missing=("t07", "t08", "t09"))
    assert "groups" not in stages
    assert model.requests == []


@pytest.mark.parametrize(("groups", "missing"), [(0, ("curate-g01", "curate-g02", "curate-g03")), (2, ("curate-g03",))])
def test_with_all_reflections_the_groups_are_known(groups: int, missing: tuple[str, ...]) -> None:
    store = memory()
    answered(store, 9, groups)
    stages, model = read(store)
    assert stages["groups"] == Stage(saved=groups, of=3, missing=missing)
    assert model.requests == []


def test_reading_does_not_stop_the_client_that_will_ask_afterwards() -> None:
    own = client(ScriptedModel(answer), memory())
    reader = Reader(ACE, own, SETTINGS, SCORERS["exact"], "run")
    asyncio.run(reader.read(BATCH, EMPTY))
    made = asyncio.run(reflect(BATCH.trajectories[0], EMPTY, learner=ACE, client=own, run="run"))
    assert made.fate == "insight"


def test_samples_that_were_not_solved_are_missing_as_rollouts() -> None:
    batch = Batch(number=1, samples=(Sample(id="s1", context="?"), Sample(id="s2", context="?")))
    stages, _ = read(memory(), batch)
    assert stages["rollouts"].missing == ("s1", "s2")


def test_the_explanation_says_what_is_saved_what_is_asked_for_and_that_a_version_follows() -> None:
    failure = Failure(stage="curate", item="curate-g03", message="curate-g03 failed")
    standing = Standing(
        seen=seen(failure=failure),
        number=2,
        traces=9,
        later=4,
        rollouts=Stage(),
        reflections=Stage(saved=9, of=9),
        groups=Stage(saved=2, of=3, missing=("curate-g03",)),
    )
    assert list(explanation(standing)) == [
        f"run {'a' * 20} of playbook p, 2026-03-02: failed",
        "  ended at curate: curate-g03 failed",
        "  done: 1 of 3 batches",
        "  saved in batch 2: 9 of 9 reflections, 2 of 3 groups",
        "  to do: groups curate-g03; the merge of batch 2; 4 traces in later batches; then one version is published",
        "  caps: none",
    ]


def test_the_explanation_names_the_caps_that_hold_with_what_is_used_of_each() -> None:
    held = uses(
        RunSettings(budget=Budget(cost=2.5, minutes=30), day_budget=Budget(calls=90)),
        Spent(cost=0.5, calls=9, seconds=90),
        Spent(cost=5, calls=12, seconds=9000),
    )
    *_, caps = explanation(Standing(seen=seen("budget"), number=1, traces=9, caps=held))
    assert caps == (
        "  caps: 1.5 of 30 minutes (--max-minutes) used; 0.5000 of 2.5 US dollars (--max-cost) used; "
        "12 of 90 calls (--max-calls-per-day) used; at one, nothing is published (--on-budget hold)"
    )


def test_a_run_that_a_cap_has_ended_with_a_version_says_where_its_other_traces_are() -> None:
    text = "\n".join(explanation(Standing(seen=seen("budget"), version=7)))
    assert "finished with version 7" in text
    assert "what a cap left out is in the backlog" in text
    assert "caps:" not in text


def test_many_that_are_missing_are_named_in_part() -> None:
    missing = tuple(f"t{number:02d}" for number in range(1, 9))
    standing = Standing(seen=seen("dead"), number=1, traces=12, reflections=Stage(saved=4, of=12, missing=missing))
    text = "\n".join(explanation(standing))
    assert "ask about t01, t02, t03, t04, t05 and 3 more; its groups; the merge of batch 1" in text


def test_a_batch_that_has_not_begun_is_said_to_be_so() -> None:
    text = "\n".join(explanation(Standing(seen=seen("dead"), number=2, traces=9)))
    assert "nothing, it has not begun" in text
    assert "all of batch 2 (9 traces); the merge of batch 2; then one version is published" in text


def test_a_run_whose_batches_are_all_done_is_only_published() -> None:
    text = "\n".join(explanation(Standing(seen=seen("dead", batches_done=3))))
    assert "to do: then one version is published" in text


def test_a_finished_run_says_that_nothing_is_to_be_done() -> None:
    text = "\n".join(explanation(Standing(seen=seen("done"), version=7)))
    assert "finished with version 7: nothing is to be done" in text
