"""The purse: caps that parallel calls, other processes and earlier invocations cannot pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from virtual import clock, run_virtually

from combee_core.config import Budget
from combee_core.errors import BudgetSpent, RunStopped, StoreUnavailable
from combee_core.ports import Store
from combee_core.purse import LOOK, Limits, Purse
from combee_core.spent import Spent, of_day, of_run, read_shares, together
from combee_core.stopping import Stop

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
PRICE = Spent(cost=0.2, tokens=100, calls=1)


def purse(store: Store | None = None, *, day: Budget | None = None, processes: int = 1, **caps: Any) -> Purse:
    """A purse in virtual time, which begins at noon."""
    limits = Limits(run=Budget(**caps), day=day or Budget(), processes=processes)
    return Purse(store or memory(), limits, clock, lambda: NOON + timedelta(seconds=clock()))


async def spend(
    of: Purse, most: Spent = PRICE, paid: Spent | None = None, *, run: str = "run", seconds: float = 1.0
) -> None:
    """One call that takes a while and is paid as reserved, or as said."""
    async with of.hold(run, most, Stop()) as hold:
        of.send(hold)
        await asyncio.sleep(seconds)
        hold.paid = most if paid is None else paid
    of.flush()


async def many(count: int, make: Callable[[], Any]) -> list[Any]:
    """The errors and results of so many calls at once."""
    return await asyncio.gather(*(make() for _ in range(count)), return_exceptions=True)


def went_through(ended: list[Any]) -> int:
    for one in ended:
        assert one is None or isinstance(one, BudgetSpent), one
    return ended.count(None)


# a cap


def test_of_twenty_parallel_calls_of_a_fifth_five_fit_under_a_cap_of_one() -> None:
    async def scene() -> int:
        of = purse(cost=1.0)
        return went_through(await many(20, lambda: spend(of)))

    assert run_virtually(scene()) == 5


@pytest.mark.parametrize(("cap", "fit"), [({"tokens": 350}, 3), ({"calls": 7}, 7), ({"cost": 0.5, "calls": 9}, 2)])
def test_every_cap_is_kept_and_the_tightest_counts(cap: dict[str, float], fit: int) -> None:
    async def scene() -> int:
        of = purse(**cap)
        return went_through(await many(20, lambda: spend(of)))

    assert run_virtually(scene()) == fit


def test_who_does_not_fit_waits_for_calls_that_take_less_than_was_reserved() -> None:
    async def scene() -> int:
        of = purse(cost=1.0)
        return went_through(await many(20, lambda: spend(of, Spent(cost=0.5), Spent(cost=0.05))))

    # Below 0.5 there is always room for one more; 0.5 and ten times 0.05 are 1.
    assert run_virtually(scene()) == 11


def test_a_reservation_that_is_settled_as_another_begins_to_wait_wakes_it() -> None:
    async def scene() -> list[Any]:
        of = purse(calls=1)

        async def free(seconds: float) -> None:
            async with of.hold("run", PRICE, Stop()):
                await asyncio.sleep(seconds)

        return await asyncio.wait_for(many(200, lambda: free(0)), 60)

    assert run_virtually(scene()) == [None] * 200


def test_the_refusal_names_the_cap_what_is_used_and_the_way_out() -> None:
    async def scene() -> None:
        of = purse(cost=0.5)
        await spend(of)
        await spend(of)
        await spend(of)

    with pytest.raises(BudgetSpent) as caught:
        run_virtually(scene())
    assert str(caught.value) == (
        "budget: this run has used 0.4000 of 0.5 US dollars (--max-cost), and the next call may take 0.2000; "
        "what was paid for is saved: raise the cap and run the same command to go on"
    )
    assert (caught.value.stage, caught.value.item) == ("budget", "--max-cost")


def test_time_is_up_for_calls_that_come_and_for_calls_whose_turn_comes_late() -> None:
    async def late(of: Purse) -> None:
        async with of.hold("run", PRICE, Stop()) as hold:
            await asyncio.sleep(100)
            of.send(hold)

    async def scene() -> list[Any]:
        of = purse(minutes=1)
        of.begin("run")
        return await asyncio.gather(late(of), _after(61, spend(of)), spend(of), return_exceptions=True)

    first, second, third = run_virtually(scene())
    assert "100.0" not in str(first)
    assert "1.7 of 1 minutes (--max-minutes)" in str(first)
    assert "1.0 of 1 minutes" in str(second)
    assert third is None


async def _after(seconds: float, awaited: Any) -> None:
    await asyncio.sleep(seconds)
    await awaited


def test_who_waits_for_room_is_told_when_the_run_stops() -> None:
    async def scene() -> None:
        of, stop = purse(calls=1), Stop()

        async def wait() -> None:
            async with of.hold("run", PRICE, stop):
                pass

        going = asyncio.create_task(spend(of, seconds=1000))
        waiting = asyncio.create_task(_after(1, wait()))
        await asyncio.sleep(2)
        stop.set(RunStopped("cancelled"))
        await waiting
        await going

    with pytest.raises(RunStopped, match="cancelled"):
        run_virtually(scene())


@given(costs=st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), max_size=30), cap=st.integers(1, 100))
def test_no_cap_is_ever_passed(costs: list[tuple[int, float]], cap: int) -> None:
    """Whatever is reserved, and whatever part of it is then paid."""

    async def scene() -> Spent:
        store = memory()
        of = purse(store, cost=cap / 10)
        calls = (spend(of, Spent(cost=most / 10), Spent(cost=part * most / 10), seconds=most) for most, part in costs)
        went_through(await asyncio.gather(*calls, return_exceptions=True))
        of.flush()
        return together(read_shares(store, of_run("run")))

    assert run_virtually(scene()).cost <= cap / 10 + 1e-6


# what counts


def test_a_request_without_an_answer_is_a_call_and_one_that_was_not_sent_is_none() -> None:
    async def scene(store: Store) -> None:
        of = purse(store)
        async with of.hold("run", PRICE, Stop()) as hold:
            of.send(hold)
        async with of.hold("run", PRICE, Stop()):
            pass
        of.flush()

    store = memory()
    run_virtually(scene(store))
    spent = together(read_shares(store, of_run("run")))
    assert (spent.calls, spent.tokens, spent.cost) == (1, 0, 0.0)


def test_what_is_in_flight_as_it_is_written_counts_as_spent() -> None:
    """A process that is killed leaves the reservation: its calls may have been paid."""

    async def scene(store: Store) -> None:
        of = purse(store)
        async with of.hold("run", PRICE, Stop()) as hold:
            of.send(hold)
            hold.account.is_written = False
            of.flush()

    store = memory()
    run_virtually(scene(store))
    assert together(read_shares(store, of_run("run"))).cost == 0.2


# others


def test_earlier_invocations_of_the_run_count() -> None:
    async def scene(store: Store) -> int:
        first, second = purse(store, cost=1.0), purse(store, cost=1.0)
        first.begin("run", "one")
        await many(3, lambda: spend(first))
        first.flush()
        second.begin("run", "two")
        return went_through(await many(20, lambda: spend(second)))

    assert run_virtually(scene(memory())) == 2


def test_minutes_of_invocations_add_up_and_those_of_its_processes_do_not() -> None:
    async def scene(store: Store) -> None:
        for invocation in ("one", "one", "two"):
            of = purse(store)
            of.begin("run", invocation)
            await spend(of, seconds=60)
            of.flush()

    store = memory()
    run_virtually(scene(store))
    assert together(read_shares(store, of_run("run"))).seconds == 120
    assert together(read_shares(store, of_run("run")), invocation="two").seconds == 60


def test_another_process_that_spends_is_noticed_within_seconds() -> None:
    async def scene(store: Store) -> int:
        one, two = purse(store, cost=1.0), purse(store, cost=1.0)
        one.begin("run", "same")
        two.begin("run", "same")
        await spend(one)
        await many(3, lambda: spend(two))
        two.flush()
        await asyncio.sleep(LOOK)
        return went_through(await many(20, lambda: spend(one)))

    assert run_virtually(scene(memory())) == 1


def test_processes_that_share_a_cap_never_pass_it_between_two_looks() -> None:
    async def scene(store: Store) -> int:
        purses = [purse(store, cost=4.0, processes=4) for _ in range(4)]
        for of in purses:
            of.begin("run", "same")
        ended = await asyncio.gather(*(many(20, lambda of=of: spend(of)) for of in purses))  # type: ignore[misc]
        return sum(map(went_through, ended))

    assert run_virtually(scene(memory())) == 20


# a day


def test_a_day_is_shared_by_all_runs_of_a_store() -> None:
    async def scene(store: Store) -> list[int]:
        day, fit = Budget(cost=1.0), []
        for run in ("a", "b", "c"):
            of = purse(store, day=day)
            fit.append(went_through(await many(3, lambda of=of, run=run: spend(of, run=run))))  # type: ignore[misc]
            of.flush()
        return fit

    assert run_virtually(scene(memory())) == [3, 2, 0]


def test_a_run_that_has_no_cap_of_its_own_counts_for_the_day_all_the_same() -> None:
    async def scene(store: Store) -> int:
        free = purse(store)
        await many(4, lambda: spend(free, run="free"))
        free.flush()
        capped = purse(store, day=Budget(cost=1.0))
        return went_through(await many(4, lambda: spend(capped)))

    assert run_virtually(scene(memory())) == 1


def test_at_midnight_in_utc_a_new_day_begins() -> None:
    async def scene(store: Store) -> tuple[int, int]:
        of = purse(store, day=Budget(calls=3, minutes=24 * 60))
        today = went_through(await many(5, lambda: spend(of)))
        await asyncio.sleep(12 * 3600)
        tomorrow = went_through(await many(5, lambda: spend(of)))
        of.flush()
        return today, tomorrow

    store = memory()
    assert run_virtually(scene(store)) == (3, 3)
    for day in (NOON.date(), NOON.date() + timedelta(days=1)):
        assert together(read_shares(store, of_day(day))).calls == 3
    assert together(read_shares(store, of_run("run"))).calls == 6


def test_the_refusal_of_a_day_says_so() -> None:
    async def scene() -> None:
        of = purse(day=Budget(calls=1))
        await spend(of)
        await spend(of)

    with pytest.raises(BudgetSpent, match=r"the runs of this store have used today \(UTC\) 1 of 1 calls"):
        run_virtually(scene())


# the store


def test_a_store_that_is_away_is_written_the_next_time() -> None:
    class Flickering:
        def __init__(self, store: Store) -> None:
            self.store, self.is_away = store, True

        def __getattr__(self, name: str) -> Any:
            if self.is_away:
                raise StoreUnavailable("away")
            return getattr(self.store, name)

    async def scene(flickering: Any) -> None:
        of = purse(flickering)
        async with of.hold("run", PRICE, Stop()) as hold:
            of.send(hold)
        with pytest.raises(StoreUnavailable):
            of.flush()
        flickering.is_away = False
        of.flush()

    store = memory()
    run_virtually(scene(Flickering(store)))
    assert together(read_shares(store, of_run("run"))).calls == 1


def test_nothing_is_written_where_nothing_was_asked() -> None:
    store = memory()
    of = Purse(store, Limits(), lambda: 0.0)
    of.begin("run", "one")
    of.flush()
    assert not store.list("")
