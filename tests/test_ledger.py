"""The ledger: unknown is never nothing, and a run's total holds what every process paid."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import KEY, receipt

from combee_core.calls import Receipt, Usage
from combee_core.config import STAGES
from combee_core.errors import StoreUnavailable
from combee_core.ledger import Ledger, Spend
from combee_core.ports import Blob, Store
from combee_core.saving import write_record

UNPRICED = Usage(input_tokens=50, output_tokens=5)
SILENT = Usage()


def total(receipts: Iterable[Receipt]) -> Spend:
    """The sum over receipts that differ."""
    return Ledger(memory()).total(KEY, receipts)


def test_nothing_bought_costs_nothing() -> None:
    assert total([]) == Spend(calls=0, tokens=0, cost=0.0)


def test_tokens_and_money_are_summed() -> None:
    spend = total([receipt("t1"), receipt("t2")])
    assert (spend.calls, spend.tokens, spend.cost) == (2, 240, 0.02)
    assert not spend.tokens_at_least
    assert not spend.cost_at_least


def test_an_unknown_price_makes_the_sum_a_lower_bound_and_leaves_the_tokens_exact() -> None:
    spend = total([receipt("t1"), receipt("t2", usage=UNPRICED)])
    assert (spend.cost, spend.cost_at_least) == (0.01, True)
    assert (spend.tokens, spend.tokens_at_least) == (175, False)


def test_where_no_price_is_known_the_cost_is_unknown_not_zero() -> None:
    spend = total([receipt("t1", usage=UNPRICED)])
    assert spend.cost is None
    assert spend.cost_at_least


def test_where_no_usage_is_known_the_tokens_are_unknown_not_zero() -> None:
    spend = total([receipt("t1", usage=SILENT)])
    assert spend.tokens is None
    assert spend.tokens_at_least


def test_a_price_of_zero_is_known() -> None:
    spend = total([receipt("t1", usage=Usage(input_tokens=1, output_tokens=1, cost=0.0))])
    assert (spend.cost, spend.cost_at_least) == (0.0, False)


@given(st.lists(st.builds(Usage, cost=st.none() | st.floats(0, 10), input_tokens=st.none() | st.integers(0, 999))))
def test_the_sum_is_what_is_known_and_says_when_something_is_not(usages: list[Usage]) -> None:
    spend = total(receipt(f"t{n}", usage=usage) for n, usage in enumerate(usages))
    costs = [u.cost for u in usages if u.cost is not None]
    assert spend.cost_at_least == (len(costs) < len(usages))
    assert spend.cost is None if usages and not costs else math.isclose(spend.cost or 0, sum(costs), abs_tol=1e-9)


def test_many_small_sums_do_not_drift() -> None:
    cheap = Usage(input_tokens=1, output_tokens=1, cost=0.1)
    assert total(receipt(f"t{n}", usage=cheap) for n in range(1000)).cost == 100.0


def test_every_stage_is_named_even_without_a_call() -> None:
    assert Ledger(memory()).calls(KEY) == dict.fromkeys(STAGES, 0)


def test_a_stage_of_another_kind_is_counted_too() -> None:
    ledger = Ledger(memory())
    ledger.asked(KEY, "judge")
    assert ledger.calls(KEY) == {**dict.fromkeys(STAGES, 0), "judge": 1}


def flushed(store: Store, *paid: Receipt, invocation: str = "", requests: int = 0) -> Ledger:
    """A process that paid, counted and wrote it down."""
    ledger = Ledger(store)
    ledger.begin(KEY, invocation)
    for one in paid:
        ledger.paid(one)
    for _ in range(requests):
        ledger.asked(KEY, "reflect")
    ledger.flush()
    return ledger


def test_runs_do_not_mix() -> None:
    ledger = Ledger(memory())
    ledger.paid(receipt("t1"))
    ledger.paid(receipt("t1", run="b" * 20))
    assert ledger.total(KEY).calls == 1
    assert ledger.spend(KEY).calls == 1


def test_what_an_earlier_process_paid_is_in_the_total_and_not_in_this_invocation(store: Store) -> None:
    flushed(store, receipt("t1"), requests=3)
    later = Ledger(store)
    later.paid(receipt("t2"))
    assert later.total(KEY) == total([receipt("t1"), receipt("t2")])
    assert later.spend(KEY).calls == 1
    assert later.calls(KEY)["reflect"] == 0


def test_a_receipt_is_counted_once_wherever_it_is_found() -> None:
    store = memory()
    flushed(store, receipt("t1"))
    later = Ledger(store)
    later.paid(receipt("t2"))
    found = [receipt("t1"), receipt("t2"), receipt("t3")] * 2
    assert later.total(KEY, found).calls == Ledger(store).total(KEY, found).calls == 3


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": 2},
        {"stage": "curate"},
        {"item": "t2"},
        {"prompt_sha": "1"},
        {"hedge": True},
        {"accepted": False},
        {"usage": SILENT},
        {"model": "another"},
    ],
)
def test_a_receipt_that_says_anything_else_is_another_one(change: dict[str, object]) -> None:
    other = receipt(**{"item": "t1", **change})
    assert flushed(memory(), receipt("t1")).total(KEY, [other]).calls == 2


def test_what_was_paid_twice_counts_twice_even_if_the_receipts_are_alike() -> None:
    """As after an attempt whose outcome could not be saved: it is made again under the same number."""
    store = memory()
    ledger = flushed(store, receipt("t1"), receipt("t1"))
    flushed(store, receipt("t1"))
    for one in (ledger, Ledger(store)):
        assert (one.total(KEY).calls, one.total(KEY).cost) == (3, 0.03)


def test_a_receipt_with_half_a_character_is_known_again_when_it_is_read() -> None:
    store, broken = memory(), receipt("t\ud83d")
    ledger = flushed(store, broken)
    assert Ledger(store).total(KEY, [broken]).calls == ledger.total(KEY, [broken]).calls == 1


def test_receipts_of_other_runs_that_are_known_are_not_this_runs() -> None:
    assert Ledger(memory()).total(KEY, [receipt("t1", run="another")]) == Spend()


def test_a_known_receipt_that_was_never_saved_counts_and_may_come_from_a_generator() -> None:
    ledger = Ledger(memory())
    for _ in range(2):
        assert ledger.total(KEY, (receipt(f"t{n}") for n in (1, 2))) == total([receipt("t1"), receipt("t2")])
    assert ledger.total(KEY) == Spend()


@pytest.mark.parametrize("damaged", [b"{", b"\xff\xfe", b"[]", b'{"stage": 1}'])
def test_a_damaged_line_is_an_answer_of_unknown_cost(damaged: bytes) -> None:
    store = memory()
    store.create(f"runs/{KEY}/receipts/{'0' * 32}-1.jsonl", b'{"requests": {}}\n' + damaged + b"\n")
    flushed(store, receipt("t1"))
    spend = Ledger(store).total(KEY)
    assert (spend.calls, spend.cost, spend.cost_at_least, spend.tokens_at_least) == (2, 0.01, True, True)


def test_a_receipt_in_an_object_of_its_own_counts_too() -> None:
    store = memory()
    store.create(f"runs/{KEY}/receipts/{'0' * 32}.json", write_record(receipt("t1")))
    assert Ledger(store).total(KEY) == total([receipt("t1")])


def test_a_new_invocation_counts_from_zero_and_forgets_nothing() -> None:
    ledger = Ledger(memory())
    ledger.asked(KEY, "reflect")
    ledger.paid(receipt("t1"))
    assert ledger.begin(KEY)
    assert ledger.calls(KEY)["reflect"] == 0
    assert ledger.spend(KEY) == Spend()
    ledger.paid(receipt("t2"))
    assert ledger.spend(KEY).calls == 1
    assert ledger.total(KEY).calls == 2


# written together


class CountingStore:
    """A store that counts its reads and writes, and is away when it is told so."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.reads = self.writes = 0
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, key: str) -> Blob | None:
        self.reads += 1
        return self.inner.read(key)

    def create(self, key: str, data: bytes) -> bool:
        self.writes += 1
        if self.is_away:
            raise StoreUnavailable("away")
        return self.inner.create(key, data)


def test_receipts_are_written_together_and_once() -> None:
    store = CountingStore(memory())
    ledger = flushed(store, *(receipt(f"t{n}") for n in range(100)), requests=100)
    assert store.writes == 1
    ledger.flush()
    ledger.begin(KEY)
    assert store.writes == 1
    assert Ledger(store).total(KEY).calls == 100


def test_what_a_process_wrote_itself_is_not_read_again_and_what_others_wrote_is_read_once() -> None:
    store = CountingStore(memory())
    flushed(store, receipt("t1"))
    ledger = flushed(store, receipt("t2"))
    for _ in range(3):
        assert (ledger.total(KEY).calls, ledger.spend(KEY).calls) == (2, 1)
    assert store.reads == 1


def written_after_an_outage(store: CountingStore) -> Ledger:
    ledger = Ledger(store)
    ledger.paid(receipt("t1"))
    ledger.asked(KEY, "reflect")
    store.is_away = True
    with pytest.raises(StoreUnavailable):
        ledger.flush()
    store.is_away = False
    ledger.paid(receipt("t2"))
    ledger.flush()
    return ledger


def test_while_the_store_is_away_receipts_wait() -> None:
    store = CountingStore(memory())
    ledger = written_after_an_outage(store)
    assert Ledger(store).total(KEY).calls == 2
    assert ledger.calls(KEY)["reflect"] == 1


def test_what_a_store_wrote_before_it_fell_silent_is_not_written_twice() -> None:
    class Ambiguous(CountingStore):
        def create(self, key: str, data: bytes) -> bool:
            self.inner.create(key, data)
            return super().create(key, data)

    store = Ambiguous(memory())
    written_after_an_outage(store)
    assert Ledger(store).total(KEY).calls == 2


@given(st.lists(st.sampled_from(["paid", "flush", "begin", "total", "reopen"]), max_size=25))
def test_however_it_is_written_the_total_is_every_answer_once(steps: list[str]) -> None:
    store, paid = memory(), 0
    ledger = Ledger(store)
    for step in steps:
        if step == "paid":
            paid += 1
            ledger.paid(receipt(f"t{paid}"))
        elif step == "flush":
            ledger.flush()
        elif step == "begin":
            ledger.begin(KEY)
        elif step == "reopen":
            ledger.flush()
            ledger = Ledger(store)
        assert ledger.total(KEY) == total(receipt(f"t{n}") for n in range(paid))


# several processes


def test_processes_of_one_invocation_see_what_the_others_have_written(store: Store) -> None:
    flow = Ledger(store)
    flow.begin(KEY, "tonight")
    flow.asked(KEY, "merge")
    flow.paid(receipt("t1"))
    flushed(store, receipt("t2"), receipt("t3"), invocation="tonight", requests=5)
    flushed(store, receipt("t4"), invocation="yesterday", requests=7)
    flushed(store, receipt("t5"), requests=9)
    assert flow.calls(KEY) == {**dict.fromkeys(STAGES, 0), "reflect": 5, "merge": 1}
    assert flow.spend(KEY).calls == 3
    assert flow.total(KEY).calls == 5


def test_what_is_written_later_is_seen_later() -> None:
    store = memory()
    flow = Ledger(store)
    flow.begin(KEY, "tonight")
    worker = flushed(store, receipt("t1"), invocation="tonight", requests=1)
    assert flow.calls(KEY)["reflect"] == 1
    worker.asked(KEY, "reflect")
    assert flow.calls(KEY)["reflect"] == 1
    worker.flush()
    assert flow.calls(KEY)["reflect"] == 2
    assert flow.spend(KEY).calls == 1


def test_an_invocation_begins_once_in_a_process() -> None:
    ledger = Ledger(memory())
    assert ledger.begin(KEY, "tonight")
    ledger.asked(KEY, "reflect")
    assert not ledger.begin(KEY, "tonight")
    assert ledger.calls(KEY)["reflect"] == 1
    assert ledger.begin(KEY, "tomorrow")
    assert ledger.calls(KEY)["reflect"] == 0


def test_a_worker_that_begins_before_the_flow_is_counted_by_it() -> None:
    store = memory()
    worker = flushed(store, receipt("t1"), invocation="tonight", requests=2)
    flow = Ledger(store)
    assert flow.total(KEY).calls == 1
    flow.begin(KEY, "tonight")
    assert flow.calls(KEY)["reflect"] == 2
    assert worker.calls(KEY)["reflect"] == 2


# threads


class MeetingStore(CountingStore):
    """A store whose readers wait for each other, so that all have read before anyone goes on."""

    def __init__(self, inner: Store, readers: int) -> None:
        super().__init__(inner)
        self._all_here = threading.Barrier(readers)

    def read(self, key: str) -> Blob | None:
        blob = super().read(key)
        self._all_here.wait(30)
        return blob


def test_threads_that_read_the_same_object_take_it_in_once() -> None:
    store = memory()
    flushed(store, receipt("t1"), receipt("t2"), invocation="tonight", requests=5)
    ledger = Ledger(MeetingStore(store, 4))
    ledger.begin(KEY, "tonight")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ledger.total(KEY), range(4)))
    assert ledger.calls(KEY)["reflect"] == 5
    assert (ledger.spend(KEY).calls, ledger.total(KEY).calls) == (2, 2)


def test_threads_may_pay_and_write_at_once() -> None:
    store = memory()
    ledger = Ledger(store)
    gate = threading.Barrier(8)

    def pay(thread: int) -> None:
        gate.wait(30)
        for n in range(25):
            ledger.asked(KEY, "reflect")
            ledger.paid(receipt(f"t{thread}-{n}"))
            if n % 5 == thread % 5:
                ledger.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(pay, range(8)))
    ledger.flush()
    assert ledger.calls(KEY)["reflect"] == 200
    assert ledger.total(KEY).calls == Ledger(store).total(KEY).calls == 200
