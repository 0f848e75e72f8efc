"""What a cap leaves of a batch is put together in code, and nothing is lost on the way."""

from __future__ import annotations

import asyncio

import pytest
from asking import client, memory
from builders import ACE, EMPTY
from hypothesis import given
from hypothesis import strategies as st
from lessons import answer, trajectory
from run_records import receipt

from combee_core.config import RunSettings
from combee_core.curate import curate
from combee_core.errors import RunStopped
from combee_core.records import Cut
from combee_core.reduction import Part
from combee_core.reflect import reflect
from combee_core.salvage import UNMERGED, already_paid, joined
from combee_core.shuffle import shuffle
from combee_core.testing import ScriptedModel
from combee_core.types import Curated, Delta, Group, Merged, Operation, OperationFate


def curated(number: int, *texts: str) -> Curated:
    operations = tuple(
        Operation(kind="ADD", section="s", text=text, sources=(f"t{number}{at}",), origin=f"curate-g{number:02d}")
        for at, text in enumerate(texts)
    )
    return Curated(group=number, delta=Delta(operations=operations))


async def unpaid(part: Part) -> Merged:
    raise RunStopped("a cap")


def merged_in_code(*groups: Curated) -> Merged:
    return asyncio.run(joined(groups, unpaid))


def texts(*groups: Curated) -> list[str]:
    return [operation.text for operation in merged_in_code(*groups).delta.operations]


def test_what_says_the_same_is_joined_and_the_rest_stands_as_it_is() -> None:
    one, two = curated(1, "Round to two decimals.", "Ask for the account first."), curated(2, "Round to two decimals.")
    assert texts(one, two) == ["Round to two decimals.", "Ask for the account first."]


def test_what_a_merge_call_would_have_read_passes_and_says_why() -> None:
    alike = ("Round every amount in euro to two decimals.", "Round every amount in euro to three decimals.")
    merged = merged_in_code(curated(1, alike[0]), curated(2, alike[1]))
    assert sorted(op.text for op in merged.delta.operations) == sorted(alike)
    assert {fate.because for fate in merged.delta.fates} == {UNMERGED}
    assert merged.receipts == ()


def test_a_merge_call_that_is_paid_for_counts_and_the_others_are_not_made() -> None:
    amounts = ("Round every amount in euro to two decimals.", "Round every amount in euro to three decimals.")
    names = ("Call the customer by the family name.", "Call the customer by the first name.")

    async def ask(part: Part) -> Merged:
        _, operations = part
        if operations[0].text not in amounts:
            raise RunStopped("a cap")
        fates = tuple(
            OperationFate(text=op.text, origin=op.origin, fate="merged", because="one rule", into=0)
            for op in operations
        )
        return Merged(delta=Delta(operations=operations[:1], fates=fates), receipts=(receipt("merge", stage="merge"),))

    merged = asyncio.run(joined([curated(1, amounts[0], names[0]), curated(2, amounts[1], names[1])], ask))
    found = {operation.text for operation in merged.delta.operations}
    assert len(found & set(amounts)) == 1
    assert found >= set(names)
    assert [one.item for one in merged.receipts] == ["merge"]


@given(st.lists(st.lists(st.text(min_size=1, max_size=20), max_size=4), max_size=4))
def test_every_operation_has_one_fate(groups: list[list[str]]) -> None:
    given_ = [curated(number, *texts) for number, texts in enumerate(groups, start=1)]
    merged = merged_in_code(*given_)
    assert len(merged.delta.fates) == sum(map(len, groups))
    assert {fate.fate for fate in merged.delta.fates} <= {"kept", "merged"}


def test_only_groups_whose_answer_is_saved_are_done_and_none_is_asked_for() -> None:
    store, trajectories = memory(), [trajectory(number) for number in range(1, 10)]

    async def scene() -> tuple[tuple[Group, ...], list[Curated | None]]:
        first = client(ScriptedModel(answer), store)
        tools = {"state": EMPTY, "learner": ACE, "client": first, "run": "run"}
        made = [await reflect(one, **tools) for one in trajectories]
        groups = shuffle([one.reflection for one in made if one.reflection], RunSettings(), 0)
        await curate(groups[1], **tools)
        first.stop("a cap")
        return groups, await already_paid(groups, lambda group: curate(group, **tools))

    groups, done = asyncio.run(scene())
    assert len(groups) > 2
    assert [one and one.group for one in done] == [group.number if group == groups[1] else None for group in groups]


@pytest.mark.parametrize(
    ("batches", "part", "said"),
    [
        (3, "", "3 complete batches"),
        (1, "2 of 3 groups of batch 1", "2 of 3 groups of batch 1"),
        (2, "1 of 3 groups of batch 2", "1 complete batch and 1 of 3 groups of batch 2"),
    ],
)
def test_what_is_published_at_a_cap_is_said_in_words(batches: int, part: str, said: str) -> None:
    assert Cut(batches=batches, reason="x", part=part).published == said
