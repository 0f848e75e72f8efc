"""Caps on the command line, in the settings, in a client's calls, and in what a run says of them."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from asking import GOOD, Naps, ask, memory, question, run, virtual_client
from hypothesis import given
from hypothesis import strategies as st
from run_records import plan
from virtual import run_virtually

from combee_core import outcome
from combee_core.adapters.models import check_prices
from combee_core.calls import Completion, Message, Prices, Prompt, Request, Usage
from combee_core.caps import Cap, breach_of, caps_of
from combee_core.cli import budgets, launch
from combee_core.client import Client
from combee_core.config import Budget, ModelSettings, RunSettings
from combee_core.errors import BudgetSpent, ModelAway, ModelBusy, ModelFailing, RunError, RunStopped, UsageError
from combee_core.purse import Limits
from combee_core.records import Accounting, Cut, RunResult
from combee_core.reserving import MARGIN, away_until, most, taken
from combee_core.runs import Run
from combee_core.saving import SavedAnswers
from combee_core.spent import NOTHING, Spent, of_run, read_shares, together
from combee_core.testing import FlakyModel, ScriptedModel

PRICES = Prices(input=0.001, output=0.01)


def request(text: str = "x" * 400, output: int = 100) -> Request:
    message = Message(role="user", content=text)
    return Request(
        prompt=Prompt(stage="reflect", item="t1", messages=(message,), answer_schema={}), max_output_tokens=output
    )


# the options


def parsed(*words: str, base: RunSettings | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    budgets.add(parser)
    return budgets.of(parser.parse_args(words), base or RunSettings())


def test_every_cap_of_a_run_and_of_a_day_has_an_option() -> None:
    words = ["--max-cost", "1.5", "--max-tokens", "9", "--max-calls", "8", "--max-minutes", "7"]
    a_day = [word.replace("--max-cost", "--max-cost-per-day") for word in ("--max-cost", "20")]
    made = parsed(*words, *a_day, "--on-budget", "publish")
    assert made["budget"] == Budget(cost=1.5, tokens=9, calls=8, minutes=7)
    assert made["day_budget"] == Budget(cost=20)
    assert made["on_budget"] == "publish"
    assert parsed() == {"budget": Budget(), "day_budget": Budget(), "on_budget": "hold"}


def test_what_no_option_says_stays_as_the_configuration_has_it() -> None:
    base = RunSettings(budget=Budget(cost=3, calls=9), day_budget=Budget(tokens=5), on_budget="publish")
    made = parsed("--max-calls", "4", base=base)
    assert made == {"budget": Budget(cost=3, calls=4), "day_budget": Budget(tokens=5), "on_budget": "publish"}


@pytest.mark.parametrize("option", ["--max-cost", "--max-calls-per-day"])
def test_a_cap_that_is_not_above_0_is_refused_by_its_option(option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} .*greater than 0"):
        parsed(option, "0")


def test_a_cap_in_money_is_refused_where_a_price_is_not_known_and_names_the_way_out() -> None:
    mine = ModelSettings(model="openai/mine", api_base="http://127.0.0.1:1/v1")
    with pytest.raises(UsageError, match=r"openai/mine.*--price INPUT,OUTPUT"):
        check_prices(RunSettings(budget=Budget(cost=1.0), model=mine))
    with pytest.raises(UsageError):
        check_prices(RunSettings(day_budget=Budget(cost=1.0), model=mine))
    check_prices(RunSettings(budget=Budget(tokens=1), model=mine))
    check_prices(RunSettings(budget=Budget(cost=1.0), model=mine.model_copy(update={"price": (1.0, 2.0)})))


def test_the_price_of_a_fallback_must_be_known_too() -> None:
    model = ModelSettings(model="openai/gpt-4o", fallbacks=("openai/mine@http://127.0.0.1:1/v1",))
    with pytest.raises(UsageError, match="openai/mine"):
        check_prices(RunSettings(budget=Budget(cost=1.0), model=model))


def test_a_fallback_has_neither_the_price_nor_the_window_of_the_first_model() -> None:
    model = ModelSettings(model="openai/mine", price=(1.0, 2.0), context_tokens=8000, fallbacks=("openai/other",))
    first, other = model.chain("reflect")
    assert (first.price, first.context_tokens) == ((1.0, 2.0), 8000)
    assert (other.price, other.context_tokens) == (None, None)
    with pytest.raises(UsageError, match=r"none is known of openai/other: .*fallbacks come from litellm alone"):
        check_prices(RunSettings(budget=Budget(cost=1.0), model=model))


# fallbacks in the settings


def test_a_fallback_is_for_all_stages_or_for_one_and_may_have_a_server_of_its_own() -> None:
    named = ("curate=anthropic/big", "openai/small@http://127.0.0.1:8000/v1")
    settings = ModelSettings(model="openai/first", api_base="http://127.0.0.1:1/v1", fallbacks=named)
    assert [(one.model, one.api_base) for one in settings.chain("curate")] == [
        ("openai/first", "http://127.0.0.1:1/v1"),
        ("anthropic/big", None),
        ("openai/small", "http://127.0.0.1:8000/v1"),
    ]
    assert [one.model for one in settings.chain("reflect")] == ["openai/first", "openai/small"]
    assert [one.model for one in settings.everyone] == ["openai/first", "openai/small", "anthropic/big"]
    assert settings.attempts == 3 * (settings.retries + 1)


def test_fallbacks_breaker_and_price_are_patience_and_not_what_an_answer_depends_on() -> None:
    plain, patient = ModelSettings(), ModelSettings(fallbacks=("simulated/overload",), breaker=3, price=(1.0, 2.0))
    assert plain.identity() == patient.identity()
    caps = RunSettings(budget=Budget(calls=3), day_budget=Budget(calls=9), on_budget="publish", model=patient)
    assert caps.identity() == RunSettings().identity()
    assert RunSettings().placed_as(caps) == caps


@pytest.mark.parametrize("names", [("simulated/overload", "openai/x"), ("openai/x", "simulated/overload")])
def test_the_stand_in_and_a_real_model_do_not_stand_in_for_each_other(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="one of them is simulated"):
        ModelSettings(model=names[0], fallbacks=(names[1],))


# caps


def test_ten_times_a_tenth_fits_under_one() -> None:
    (cap,) = caps_of(Budget(cost=1.0))
    tenths = sum([Spent(cost=0.1)] * 9, NOTHING)
    assert breach_of(cap, tenths, NOTHING, NOTHING, Spent(cost=0.1)) is None
    assert breach_of(cap, tenths, NOTHING, NOTHING, Spent(cost=0.11)) is not None


@given(cap=st.integers(1, 1000), own=st.integers(0, 500), others=st.integers(0, 500), wanted=st.integers(0, 500))
def test_a_call_fits_exactly_if_the_sum_is_within_the_cap(cap: int, own: int, others: int, wanted: int) -> None:
    breach = breach_of(Cap("calls", cap), *(Spent(calls=n) for n in (own, others, 0, wanted)))
    assert (breach is not None) == (own + others + wanted > cap)


# what a call may take, and took


def test_the_reservation_allows_for_an_estimate_that_is_too_low_and_for_the_longest_answer() -> None:
    assert most(request(), PRICES) == Spent(cost=MARGIN * 100 * 0.001 + 1.0, tokens=MARGIN * 100 + 100, calls=1)
    assert most(request(), None).cost == 0


def test_an_answer_without_usage_counts_as_its_estimate_and_not_as_free() -> None:
    spent = taken(request(), Completion(text="y" * 40), PRICES)
    assert spent == Spent(cost=100 * 0.001 + 10 * 0.01, tokens=110, calls=1)


def test_what_the_provider_says_counts_before_any_estimate() -> None:
    usage = Usage(input_tokens=7, output_tokens=3, cost=0.5)
    assert taken(request(), Completion(text="y", usage=usage), PRICES) == Spent(cost=0.5, tokens=10, calls=1)


# a client's calls


def priced(model: Any, store: Any = None, **caps: Any) -> Client:
    limits = Limits(run=Budget(**caps))
    settings = ModelSettings(model="first", max_output_tokens=20, hedge=0.0, retries=0)
    return Client(model, SavedAnswers(store or memory()), settings, "v1", sleep=Naps(), limits=limits)


def test_twenty_parallel_calls_of_a_client_keep_the_cap_and_all_that_is_paid_is_saved() -> None:
    async def answer(_: Request) -> Completion:
        return Completion(text='{"value": 42}', usage=Usage(input_tokens=10, output_tokens=20, cost=0.2))

    store, model = memory(), ScriptedModel(answer, name="first", prices=PRICES)
    asking = priced(model, store, cost=1.0)

    async def scene() -> list[Any]:
        import asyncio

        return await asyncio.gather(*(asking.ask(question(f"t{n}"), "run") for n in range(20)), return_exceptions=True)

    ended = run(scene())
    good = [n for n, one in enumerate(ended) if not isinstance(one, BaseException)]
    assert len(good) == len(model.requests) <= 5
    assert all(isinstance(one, BudgetSpent) for n, one in enumerate(ended) if n not in good)
    later = priced(ScriptedModel([], name="first", prices=PRICES), store, cost=1.0)
    assert all(ask(later, question(f"t{n}")).value == 42 for n in good)


def test_a_call_over_a_cap_stops_all_that_follow_until_the_next_invocation() -> None:
    model = ScriptedModel(lambda _: GOOD, name="first")
    asking = priced(model, calls=2)
    asking.begin("run", "one")
    for number in range(2):
        ask(asking, question(f"t{number}"))
    for number in range(2, 9):
        with pytest.raises(BudgetSpent, match="2 of 2 calls"):
            ask(asking, question(f"t{number}"))
    assert ask(asking, question("t0")).value == 42, "what is saved costs nothing"
    asking.begin("other", "two")
    assert ask(asking, question("t2"), "other").value == 42


def test_a_busy_provider_costs_no_call() -> None:
    model = FlakyModel(ScriptedModel(lambda _: GOOD, name="first"), {1: ModelBusy("429", 1.0), 2: ModelBusy("529")})
    asking = priced(model, calls=1)
    assert ask(asking).value == 42
    asking.candidates.flush()
    assert together(read_shares(asking.answers.store, of_run("run"))).calls == 1


def test_what_a_client_spends_lies_in_the_store_within_seconds() -> None:
    store = memory()

    async def scene() -> None:
        import asyncio

        asking = virtual_client(ScriptedModel(lambda _: GOOD), store)
        await asking.ask(question(), "run")
        await asyncio.sleep(2)

    run_virtually(scene())
    assert together(read_shares(store, of_run("run"))).tokens == 15


def test_a_price_of_ones_own_is_what_receipts_say() -> None:
    settings = ModelSettings(model="first", price=(1e6, 2e6), hedge=0.0)
    asking = Client(ScriptedModel(lambda _: GOOD), SavedAnswers(memory()), settings, "v1", sleep=Naps())
    assert ask(asking).receipts[0].usage.cost == 10 + 2 * 5


# what a run says


def test_each_error_has_its_status() -> None:
    statuses = {
        "budget": BudgetSpent("x", "budget"),
        "stopped": RunStopped("cancelled"),
        "failed": ModelFailing("20 calls in a row failed"),
    }
    assert {name: outcome.status_of(error) for name, error in statuses.items()} == {name: name for name in statuses}
    assert outcome.status_of(ModelAway("tomorrow")) == "stopped"
    assert outcome.status_of(RunError("x")) == "failed"
    assert outcome.status_of(None) == "done"


def test_a_run_that_was_cut_short_says_why_and_what_became_of_the_rest() -> None:
    counts = Accounting.model_validate({"in": 5, "learned": 3, "deferred": 2})
    result = RunResult(playbook="p", version=2, digest="d", note="single group: fewer than 4", accounting=counts)
    cut = outcome.cut_short(result, Cut(batches=3, reason="budget: this run has used 9 of 9 calls (--max-calls)"))
    assert cut.status == "budget"
    assert "9 of 9 calls" in cut.note
    assert "3 complete batches" in cut.note
    assert "backlog" in cut.note
    assert cut.note.endswith(result.note)
    assert cut.error is None


@pytest.mark.parametrize(("held", "says"), [(3, "--on-budget publish would have published the 3 batches"), (0, None)])
def test_the_way_to_publish_is_named_only_where_it_would_have_published_something(
    caplog: pytest.LogCaptureFixture, held: int, says: str | None
) -> None:
    from run_records import request as asked

    spent = BudgetSpent("budget: 9 of 9 calls (--max-calls)", "budget", "--max-calls")
    spent.held = held
    with caplog.at_level("INFO"):
        assert launch.report(outcome.never_begun(asked(), spent), spent, as_json=True) == 1
    assert ("--on-budget publish" in caplog.text) == bool(says)
    assert (says or "nothing was published") in caplog.text


def test_where_a_run_was_cut_is_recorded_once() -> None:
    store = memory()
    a_run = Run(store, plan(3).key)
    assert a_run.cut() is None
    first = a_run.end_early(Cut(batches=2, reason="first"))
    assert a_run.end_early(Cut(batches=3, reason="second")) == first == a_run.cut()


def test_a_wait_of_years_names_no_moment() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 30, 23, 59, 30, tzinfo=UTC)
    assert "try again after 2026-12-01 00:59:30 UTC" in away_until(ModelBusy("429", 3600.0), now, 900)
    assert "try again after a year" in away_until(ModelBusy("429", float("inf")), now, 900)
