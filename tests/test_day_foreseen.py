"""What is foreseen of a day is what is chosen when its turn comes, and foreseeing it writes nothing."""

from __future__ import annotations

from typing import Any

from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import DAY, items, request

from combee_core.day_runs import DayInput, choose, foresee, leave_mark
from combee_core.markers import marker_of
from combee_core.ports import Store
from combee_core.records import RunResult, TraceFate

STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(0, 5),
            "salt": st.sampled_from(["", "new"]),
            "again": st.booleans(),
            "attempt": st.sampled_from(["", "", "forced"]),
            "ends": st.sampled_from(["no", "unmarked", "marked"]),
            "deferred": st.integers(0, 2),
            "cleared": st.booleans(),
        }
    ),
    max_size=5,
)


def contents(store: Store) -> dict[str, bytes]:
    blobs = {key: store.read(key) for key in store.list("")}
    return {key: blob.data for key, blob in blobs.items() if blob}


def take(store: Store, count: int, salt: str, again: bool, attempt: str, **ends: Any) -> None:
    """Look at a day as it is now, then choose, and perhaps learn it."""
    day = DayInput(request(source=DAY, again=again), items(count, salt))
    before = contents(store)
    seen, foreseen = foresee(store, day, "", attempt)
    assert contents(store) == before
    choice = choose(store, day, 0, "", attempt)
    assert (seen.happened, seen.is_work, seen.traces) == (choice.happened, choice.is_work, choice.traces)
    if not choice.is_work:
        assert foreseen == ()
        return
    run = choice.run
    assert run is not None
    assert foreseen == run.plan().items
    assert seen.run in (None, run)
    finish(store, run.key, choice.run, **ends)


def finish(store: Store, key: str, run: Any, ends: str, deferred: int, cleared: bool) -> None:
    """Let the run end, with some traces put off, and with or without its mark; then its records may be cleared away."""
    if ends == "no":
        return
    fates = tuple(TraceFate(trace_id=item.id, fate="deferred") for item in run.plan().items[:deferred])
    result = run.finish(RunResult(playbook="p", version=1, digest="d", run=key, fates=fates))
    if ends == "marked":
        leave_mark(run, result)
        assert marker_of(store, run.plan().request).has(key)
        for one in store.list(run.path("")) if cleared else ():
            store.delete(one)


@given(STEPS)
def test_what_is_foreseen_is_what_is_chosen(steps: list[dict[str, Any]]) -> None:
    store = memory()
    for step in steps:
        take(store, **step)
