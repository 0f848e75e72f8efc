"""Days one after the other: each reads what those before it have taught."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from combee_core.calls import Prices
from combee_core.config import RunSettings
from combee_core.estimate import Basis, Load, estimate
from combee_core.outlook import DayWork, estimate_days, guessed
from combee_core.records import Sizing

BASIS = Basis(
    settings=RunSettings(batch_size=20),
    fixed={"rollout": 100, "reflect": 400, "curate": 500, "merge": 600},
    prices=Prices(input=1e-6, output=1e-6),
)
TWENTY = Load(traces=(1000,) * 20)


def days(*loads: tuple[Load, ...]) -> list[DayWork]:
    return [
        DayWork(day=date(2026, 3, 1) + timedelta(days=n), traces=sum(load.size for load in its), loads=its)
        for n, its in enumerate(loads)
    ]


def test_no_days_cost_nothing() -> None:
    found = estimate_days([], BASIS)
    assert (found.days, found.total.cost, found.total.hours) == ((), 0, 0)


def test_days_in_order_cost_what_their_batches_cost_in_order() -> None:
    found = estimate_days(days((TWENTY,), (), (TWENTY, TWENTY)), BASIS)
    whole = estimate([TWENTY] * 3, BASIS)
    assert found.total.calls == whole.calls
    assert found.total.input_tokens == pytest.approx(whole.input_tokens, abs=3)
    assert found.total.cost == pytest.approx(whole.cost)
    assert found.total.bullets == pytest.approx(whole.bullets)


def test_a_later_day_reads_a_longer_playbook() -> None:
    first, second = estimate_days(days((TWENTY,), (TWENTY,)), BASIS).days
    assert second.estimate.input_tokens > first.estimate.input_tokens
    assert second.estimate.calls == first.estimate.calls


def test_independent_days_all_read_the_present_one() -> None:
    found = estimate_days(days((TWENTY,), (TWENTY,)), replace(BASIS, bullets=500.0), independent=True)
    first, second = found.days
    assert second.estimate == first.estimate
    assert found.total.cost == pytest.approx(2 * (first.estimate.cost or 0))


def test_a_day_without_work_keeps_its_reason_and_costs_nothing() -> None:
    idle = DayWork(day=date(2026, 3, 1), traces=40, left_out=2, note="already learned (version 3)")
    (day,) = estimate_days([idle], BASIS).days
    assert (day.traces, day.left_out, day.note) == (40, 2, "already learned (version 3)")
    assert (day.estimate.batches, day.estimate.cost, day.estimate.bullets) == (0, 0, BASIS.bullets)


def test_a_known_batch_size_is_kept() -> None:
    known = Sizing(total=100, batch_size=30, reason="as given")
    assert guessed(known, 40) is known


def test_where_the_size_is_still_to_be_measured_the_fallback_stands_for_it() -> None:
    found = guessed(Sizing(total=100, profile=(5, 10, 20)), 40)
    assert [found.part(n).stop - found.part(n).start for n in range(1, found.count + 1)] == [5, 10, 20, 40, 25]
    assert found.reason == "batches of 5, 10, 20 measure the batch size; 40 is taken for the rest"
