"""What tokens cost: where a price is known, and what a call comes to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.litellm_model import LitellmModel
from combee_core.adapters.litellm_wire import prices_in
from combee_core.adapters.models import prices_of
from combee_core.calls import FREE, Prices, Usage
from combee_core.config import ModelSettings
from combee_core.simulation.model import SimulatedModel

DEAR = Prices(input=2.0, output=10.0, cached=0.5)
tokens = st.integers(0, 10**6)


def test_a_call_costs_its_input_what_of_it_was_cached_and_its_output() -> None:
    assert DEAR.cost(Usage(input_tokens=100, cached_tokens=40, output_tokens=3)) == 60 * 2 + 40 * 0.5 + 30


def test_without_a_price_of_its_own_cached_input_costs_what_all_input_costs() -> None:
    usage = Usage(input_tokens=100, cached_tokens=40, output_tokens=0)
    assert Prices(input=2.0, output=1.0).cost(usage) == 200


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=3), Usage(output_tokens=3)])
def test_a_call_whose_tokens_are_unknown_has_an_unknown_cost_which_is_not_0(usage: Usage) -> None:
    assert DEAR.cost(usage) is None


@given(read=tokens, cached=tokens, written=tokens)
def test_whatever_a_provider_says_was_cached_no_cost_is_negative(read: int, cached: int, written: int) -> None:
    cost = DEAR.cost(Usage(input_tokens=read, cached_tokens=cached, output_tokens=written))
    assert cost is not None
    assert 0 <= cost <= read * DEAR.input + written * DEAR.output


def test_litellm_knows_the_prices_of_well_known_models() -> None:
    found = LitellmModel("openai/gpt-4o").prices
    assert found is not None
    assert found.cached is not None
    assert 0 < found.cached < found.input < found.output < 0.001


@pytest.mark.parametrize("model", ["openai/a-name-of-ones-own", "nobody/knows"])
def test_of_a_name_of_ones_own_no_price_is_known(model: str) -> None:
    assert LitellmModel(model, "http://127.0.0.1:1/v1").prices is None


def test_a_row_of_zeros_is_no_price_list() -> None:
    assert prices_in({"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}) is None
    assert prices_in({"input_cost_per_token": 0.1}) == Prices(input=0.1, output=0.0)


def test_the_stand_in_is_free_in_process_and_served() -> None:
    assert SimulatedModel().prices == FREE
    assert LitellmModel("openai/simulated/overload", "http://127.0.0.1:1/v1").prices == FREE


def test_a_price_that_is_given_counts_before_what_is_known() -> None:
    given_price = ModelSettings(model="openai/gpt-4o", price=(1.0, 4.0))
    assert prices_of(given_price) == Prices(input=1e-6, output=4e-6)
    assert prices_of(ModelSettings(model="openai/gpt-4o")) == LitellmModel("openai/gpt-4o").prices
    assert prices_of(ModelSettings(model="openai/mine", api_base="http://127.0.0.1:1/v1")) is None
