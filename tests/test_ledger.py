"""The ledger: unknown is never nothing, and a run's total holds what every process paid."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asking import memory
from hypothesis import given
from hypothesis import strategies as st
from run_records import KEY, receipt

from combee_core.calls import Receipt, Usage
from combee_core.ledger import STAGES, Ledger, Spend, total
from combee_core.ports import Blob, Store

UNPRICED = Usage(input_tokens=50, output_tokens=5)
SILENT = Usage()


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


def test_runs_do_not_mix() -> None:
    ledger = Ledger(memory())
    ledger.paid(receipt("t1"))
    ledger.paid(receipt("t1", run="b" * 20))
    assert [r.run for r in ledger.receipts(KEY)] == [KEY]
    assert ledger.spend(KEY).calls == 1


def test_what_an_earlier_process_paid_is_in_the_total_and_not_in_this_invocation(store: Store) -> None:
    Ledger(store).paid(receipt("t1"))
    later = Ledger(store)
    later.paid(receipt("t2"))
    assert {r.item for r in later.receipts(KEY)} == {"t1", "t2"}
    assert later.spend(KEY).calls == 1


def test_a_receipt_is_counted_once_wherever_it_is_found() -> None:
    store = memory()
    Ledger(store).paid(receipt("t1"))
    later = Ledger(store)
    later.paid(receipt("t1"))
    assert len(later.receipts(KEY, [receipt("t1"), receipt("t1")])) == 1


@pytest.mark.parametrize("change", [{"attempt": 2}, {"stage": "curate"}, {"item": "t2"}, {"prompt_sha": "1"}])
def test_another_attempt_stage_item_or_prompt_is_another_receipt(change: dict[str, object]) -> None:
    ledger = Ledger(memory())
    ledger.paid(receipt("t1"))
    ledger.paid(receipt(**{"item": "t1", **change}))
    assert len(ledger.receipts(KEY)) == 2


def test_receipts_of_other_runs_that_are_known_are_not_this_runs() -> None:
    assert Ledger(memory()).receipts(KEY, [receipt("t1", run="another")]) == ()


def test_a_known_receipt_that_was_never_saved_counts() -> None:
    assert Ledger(memory()).receipts(KEY, [receipt("t1")]) == (receipt("t1"),)


class CountingStore:
    """A store that counts what is read from it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, key: str) -> Blob | None:
        self.reads += 1
        return self.inner.read(key)


def test_what_is_known_is_not_read_again() -> None:
    store = CountingStore(memory())
    known = [receipt(f"t{n}") for n in range(5)]
    for paid in (*known, receipt("unknown")):
        Ledger(store).paid(paid)
    store.reads = 0
    assert total(Ledger(store).receipts(KEY, known)).calls == 6
    assert store.reads == 1


def test_a_damaged_receipt_is_an_answer_of_unknown_cost() -> None:
    store = memory()
    store.create(f"runs/{KEY}/receipts/{'0' * 32}.json", b"{")
    ledger = Ledger(store)
    ledger.paid(receipt("t1"))
    spend = total(ledger.receipts(KEY))
    assert (spend.calls, spend.cost, spend.cost_at_least, spend.tokens_at_least) == (2, 0.01, True, True)


def test_a_new_invocation_counts_from_zero_and_forgets_nothing() -> None:
    ledger = Ledger(memory())
    ledger.asked(KEY, "reflect")
    ledger.paid(receipt("t1"))
    ledger.begin(KEY)
    assert ledger.calls(KEY)["reflect"] == 0
    assert ledger.spend(KEY) == Spend()
    ledger.paid(receipt("t2"))
    assert ledger.spend(KEY).calls == 1
    assert len(ledger.receipts(KEY)) == 2


def test_threads_may_pay_at_once() -> None:
    ledger = Ledger(memory())
    gate = threading.Barrier(8)

    def pay(thread: int) -> list[Receipt]:
        gate.wait(30)
        made = [receipt(f"t{thread}-{n}") for n in range(25)]
        for paid in made:
            ledger.asked(KEY, "reflect")
            ledger.paid(paid)
        return made

    with ThreadPoolExecutor(8) as pool:
        made = [paid for some in pool.map(pay, range(8)) for paid in some]
    assert ledger.calls(KEY)["reflect"] == 200
    assert {r.item for r in ledger.receipts(KEY)} == {r.item for r in made}
