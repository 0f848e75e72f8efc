"""Publishing: once a run, on whatever `latest` is by then, and never twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from builders import ACE, EMPTY, add, change, vote
from run_records import KEY, plan, receipt, request, states

from combee_core.config import Source
from combee_core.errors import StoreError, UsageError
from combee_core.playbook import Playbook
from combee_core.ports import Blob, Store
from combee_core.publish import base_state, publish, refuse_mixing
from combee_core.records import Plan, State
from combee_core.types import Update
from combee_core.versions import Version, Versions


def learned(*texts: str, source: str = "t01") -> Update:
    return Update(operations=tuple(add(text, source) for text in texts))


def done(versions: Versions, made: Plan, recorded: Sequence[State], flow: str = "flow-1") -> Version:
    version, _ = publish(made, recorded, versions, ACE, flow_run_id=flow)
    assert version is not None
    return version


def book(version: Version | None) -> Playbook:
    assert version is not None
    state: Playbook = ACE.load(version.state)
    return state


def texts(version: Version | None) -> list[str]:
    return [bullet.text for bullet in book(version).bullets]


def other(key: str, base: int = 0, day: date | None = None) -> Plan:
    return plan(key=key, base_version=base, request=request(source=Source(uris=("/x",), day=day)))


def test_the_last_state_becomes_the_next_version(store: Store) -> None:
    versions = Versions(store, "p")
    version = done(versions, plan(), states(learned("one"), learned("two")))
    assert (version.version, version.parent, version.run, version.flow_run_id) == (1, 0, KEY, "flow-1")
    assert texts(versions.latest()) == ["one", "two"]
    assert version.digest == ACE.digest(book(version))
    assert [(b.created, b.updated) for b in book(version).bullets] == [(1, 1), (1, 1)]


def test_publishing_twice_is_publishing_once(store: Store) -> None:
    versions = Versions(store, "p")
    first = done(versions, plan(), states(learned("one")), "flow-1")
    second = done(versions, plan(), states(learned("one")), "flow-2")
    assert second == first
    assert [v.version for v in versions.chain()] == [1]


def test_a_crash_after_the_pointer_moved_publishes_nothing_more_even_behind_newer_versions() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("ours")))
    done(versions, other("b", 1), states(learned("theirs"), base=book(first), version=2))
    again = done(versions, other("a"), states(learned("ours")))
    assert again == first
    assert [v.version for v in versions.chain()] == [2, 1]


class Crash(Exception):
    """Stands for kill -9."""


class CrashingStore:
    """A store whose process dies before the pointer moves."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        raise Crash


@pytest.mark.parametrize("flow", ["flow-1", "flow-2"], ids=["same flow run", "taken over"])
def test_a_crash_between_the_version_and_the_pointer_is_gone_on_with(flow: str) -> None:
    store = memory()
    with pytest.raises(Crash):
        publish(plan(), states(learned("one")), Versions(CrashingStore(store), "p"), ACE, flow_run_id="flow-1")
    versions = Versions(store, "p")
    assert versions.latest() is None
    version = done(versions, plan(), states(learned("one")), flow)
    assert versions.latest() == version
    assert [v.version for v in versions.chain()] == [1]


def test_nothing_learned_on_nothing_is_no_version() -> None:
    versions = Versions(memory(), "p")
    assert publish(plan(), states(), versions, ACE, flow_run_id="f") == (None, ())
    assert publish(plan(), states(Update()), versions, ACE, flow_run_id="f") == (None, ())
    assert versions.store.list("") == []


def test_content_that_is_already_there_makes_no_new_version() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("one")))
    second = done(versions, other("b", 1), states(Update(), base=book(first), version=2))
    assert second == first
    assert [v.version for v in versions.chain()] == [1]


def test_the_same_lesson_from_the_same_trace_again_makes_no_new_version() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("one")))
    second = done(versions, other("b", 1), states(learned("one"), base=book(first), version=2))
    assert second == first


# latest has moved


def test_of_two_runs_on_one_base_nothing_is_lost_and_the_second_is_rebased(store: Store) -> None:
    versions = Versions(store, "p")
    base = done(versions, other("base"), states(learned("old")))
    old = next(book(base).bullets)
    first = states(learned("ours"), base=book(base), version=2)
    second = states(learned("theirs"), Update(votes=(vote(old.id, "t09"),)), base=book(base), version=2)
    done(versions, other("a", 1), first)
    last = done(versions, other("b", 1), second)
    assert (last.version, last.parent) == (3, 2)
    assert texts(last) == ["old", "ours", "theirs"]
    assert [(b.created, b.helpful) for b in book(last).bullets] == [(1, 1), (2, 0), (3, 0)]
    assert len({b.id for b in book(last).bullets}) == 3


def test_what_the_new_base_does_not_allow_is_set_aside_and_stays_on_record() -> None:
    versions = Versions(memory(), "p")
    base = done(versions, other("base"), states(learned("old")))
    bullet = next(book(base).bullets)
    ours, theirs = (
        states(Update(operations=(change(bullet, f"old, {who} say", "t1"), add(f"{who} add", "t2"))), base=book(base))
        for who in ("we", "they")
    )
    done(versions, other("a", 1), theirs)
    version, aside = publish(other("b", 1), ours, versions, ACE, flow_run_id="f")
    assert texts(version) == ["old, they say", "they add", "we add"]
    (item,) = aside
    assert "has changed since" in item.reason
    assert publish(other("b", 1), ours, versions, ACE, flow_run_id="f") == (version, aside)


def test_two_runs_on_the_same_traces_count_each_verdict_once() -> None:
    versions = Versions(memory(), "p")
    base = done(versions, other("base"), states(learned("old")))
    bullet = next(book(base).bullets)
    same = [Update(votes=(vote(bullet.id, "t1"), vote(bullet.id, "t2", "harmful")))]
    done(versions, other("a", 1), states(*same, base=book(base), version=2))
    last = done(versions, other("b", 1), states(*same, base=book(base), version=2))
    assert last.version == 2
    assert [(b.helpful, b.harmful) for b in book(last).bullets] == [(1, 1)]


def test_eight_publishers_at_once_lose_nothing() -> None:
    store = memory()
    gate = threading.Barrier(8)

    def write(number: int) -> Version:
        gate.wait(30)
        return done(Versions(store, "p"), other(f"run-{number}"), states(learned(f"lesson {number}")))

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(write, range(8)))
    latest = Versions(store, "p").latest()
    assert sorted(texts(latest)) == [f"lesson {n}" for n in range(8)]
    assert sorted(version.version for version in made) == list(range(1, 9))


class MovingStore:
    """A store in which somebody else always wins the pointer."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def replace(self, key: str, data: bytes, tag: str | None) -> bool:
        self.tries += 1
        return False

    def read(self, key: str) -> Blob | None:
        return self.inner.read(key)


def test_a_writer_that_never_wins_gives_up_and_says_so() -> None:
    moving = MovingStore(memory())
    with pytest.raises(StoreError, match="moved 20 times in a row; run again"):
        publish(plan(), states(learned("one")), Versions(moving, "p"), ACE, flow_run_id="f")
    assert moving.tries == 20


# who and when


def test_the_models_that_answered_are_named_with_those_before_them() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("one"), model="openai/gpt-4o"))
    later = states(learned("two"), learned("three"), base=book(first), version=2, model="anthropic/claude")
    second = done(versions, other("b", 1), later)
    assert (first.models, first.learned_by) == (("openai/gpt-4o",), ("openai/gpt-4o",))
    assert second.models == ("anthropic/claude",)
    assert second.learned_by == ("anthropic/claude", "openai/gpt-4o")


def test_a_model_whose_answers_were_all_rejected_has_taught_nothing() -> None:
    (state,) = states(learned("one"))
    rejected = receipt("t02", model="poor/model", accepted=False)
    state = state.model_copy(update={"receipts": (*state.receipts, rejected, receipt("t03", model=""))})
    assert done(Versions(memory(), "p"), plan(), [state]).models == ("scripted/model",)


def test_the_day_of_the_newest_run_stands() -> None:
    versions = Versions(memory(), "p")
    made = [date(2026, 3, 1), date(2026, 3, 3), date(2026, 3, 2), None]
    seen = []
    for number, day in enumerate(made):
        latest = versions.latest()
        recorded = states(learned(f"lesson {number}"), base=book(latest) if latest else EMPTY, version=number + 1)
        seen.append(done(versions, other(f"run-{number}", number, day), recorded).as_of)
    assert seen == [date(2026, 3, 1), date(2026, 3, 3), date(2026, 3, 3), date(2026, 3, 3)]


def test_the_stand_in_does_not_write_into_what_a_real_model_learned() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("one"), model="openai/gpt-4o"))
    fake = states(learned("two"), base=book(first), version=2, model="simulated/overload")
    with pytest.raises(UsageError, match="was learned by openai/gpt-4o"):
        publish(other("b", 1), fake, versions, ACE, flow_run_id="f")
    assert versions.latest() == first


def test_mixing_is_refused_before_anything_is_asked() -> None:
    real = done(Versions(memory(), "p"), plan(), states(learned("one"), model="openai/gpt-4o"))
    with pytest.raises(UsageError, match="--playbook"):
        refuse_mixing(real, "simulated/overload")
    refuse_mixing(real, "openai/gpt-5")
    refuse_mixing(None, "simulated/overload")


def test_what_the_stand_in_learned_and_what_was_imported_may_be_built_on() -> None:
    fake = done(Versions(memory(), "p"), plan(), states(learned("one"), model="simulated/overload"))
    refuse_mixing(fake, "simulated/overload")
    imported = fake.model_copy(update={"learned_by": ()})
    refuse_mixing(imported, "simulated/overload")


def test_a_run_starts_from_the_recorded_version_and_not_from_the_latest() -> None:
    versions = Versions(memory(), "p")
    first = done(versions, other("a"), states(learned("one")))
    done(versions, other("b", 1), states(learned("two"), base=book(first), version=2))
    assert base_state(plan(base_version=0), versions, ACE) == ACE.empty()
    assert base_state(plan(base_version=1), versions, ACE) == book(first)
    with pytest.raises(UsageError, match="no version 9"):
        base_state(plan(base_version=9), versions, ACE)
