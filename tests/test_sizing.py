"""A later night against the measured curve: from records, and on a real clock with a server that slows down."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from curves import seen
from prefect.logging import disable_run_logger
from run_records import items
from simserver import simulated_server

from combee_core import batch_size, measured
from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, Workshop, open_workshop
from combee_core.config import SIMULATED, ModelSettings, RunRequest, RunSettings, SizeSettings, Source
from combee_core.errors import CombeeError
from combee_core.measured import Measured
from combee_core.records import RunResult, Sizing
from combee_core.runs import Run, find_or_plan
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.sizes import Observation
from flows.epoch import epoch
from flows.terminal import start
from tasks import sizing

# from records

TOTAL = 40
SIZES = SizeSettings(drift=0.5)


def curve(size: int) -> float:
    """Seconds of an iteration in the nights of this part."""
    return 20 * size**0.25


CURVE = tuple(Observation(batch_size=size, delay=curve(size)) for size in (5, 10, 20))
AUTO = batch_size.decide(CURVE, SIZES, TOTAL)


def recorded(
    profile: tuple[int, ...] = (), settings: RunSettings | None = None, total: int = TOTAL, size: int | None = 20
) -> Workshop:
    """A run in a new store, cut into its profile and batches of `size`, in which nothing has been done yet."""
    settings = settings or RunSettings(sizes=SIZES, model=ModelSettings(model=SIMULATED))
    uri = f"memory://{uuid.uuid4().hex}"
    request = RunRequest(playbook="p", store=uri, source=Source(uris=("/traces",)), settings=settings)
    run = find_or_plan(open_store(uri), request, items(total), (), 0)
    run.begin_sizing(Sizing(total=total, profile=profile, batch_size=size))
    return open_workshop(Place(store=uri, run=run.key))


def known(shop: Workshop) -> Measured:
    found = measured.known(shop.store, sizing.subject(shop))
    assert found is not None
    return found


def compared(shop: Workshop, later: Sequence[Observation], first: int = 1) -> Measured:
    """What is known of the curve after a night with this decision and these iterations, from batch `first` on."""
    was = Measured(
        subject=sizing.subject(shop), total=TOTAL, run="earlier", when=datetime(2026, 3, 1, tzinfo=UTC),
        observations=CURVE, settings=SIZES,
    )  # fmt: skip
    measured.remember(shop.store, was)
    for number, observation in enumerate(later, start=first):
        shop.run.observe(number, observation)
    with disable_run_logger():
        sizing.compare(shop)
    return known(shop)


@pytest.mark.parametrize("times", [0.4, 0.8, 1.0, 1.4, 1.6])
def test_a_night_is_noted_with_its_deviation_and_beyond_the_share_the_curve_is_stale(times: float) -> None:
    shop = recorded()
    shop.run.decide(AUTO)
    after = compared(shop, seen({20: times * curve(20)}))
    assert [(one.run, one.deviation) for one in after.drifts] == [(shop.run.key, pytest.approx(times - 1, abs=0.01))]
    assert after.stale == (abs(times - 1) > SIZES.drift)


@pytest.mark.parametrize(("drift", "stale"), [(0.5, True), (3.0, False)])
def test_how_far_delays_may_leave_the_curve_is_for_drift_to_say(drift: float, stale: bool) -> None:
    shop = recorded(settings=RunSettings(sizes=SizeSettings(drift=drift), model=ModelSettings(model=SIMULATED)))
    shop.run.decide(AUTO)
    assert compared(shop, seen({20: 3 * curve(20)})).stale is stale


def test_a_warm_iteration_counts_more_than_the_cold_one_before_it() -> None:
    shop = recorded()
    shop.run.decide(AUTO)
    later = [*seen({20: 9 * curve(20)}, 20), *seen({20: curve(20)})]
    assert not compared(shop, later).stale


def test_a_night_of_one_cold_batch_is_compared_all_the_same() -> None:
    shop = recorded()
    shop.run.decide(AUTO)
    after = compared(shop, seen({20: 3 * curve(20)}, 20))
    assert [one.deviation for one in after.drifts] == [pytest.approx(2.0, abs=0.01)]
    assert after.stale


def test_the_iterations_that_a_run_measured_on_are_not_compared_with_their_own_curve() -> None:
    shop = recorded(profile=(5, 10))
    shop.run.decide(AUTO)
    for number, one in enumerate(seen({5: 9 * curve(5), 10: 9 * curve(10)}), start=1):
        shop.run.observe(number, one)
    after = compared(shop, seen({20: curve(20)}), first=3)
    assert [one.deviation for one in after.drifts] == [pytest.approx(0.0, abs=0.01)]


def test_answers_from_the_store_and_a_given_batch_size_say_nothing_about_the_curve() -> None:
    resumed = recorded()
    resumed.run.decide(AUTO)
    assert compared(resumed, seen({20: None})).drifts == ()
    given = recorded()
    assert compared(given, seen({20: 9 * curve(20)})).drifts == ()


def test_a_night_without_a_known_curve_notes_nothing() -> None:
    shop = recorded()
    shop.run.decide(AUTO)
    shop.run.observe(1, seen({20: 9 * curve(20)})[0])
    with disable_run_logger():
        sizing.compare(shop)
    assert measured.known(shop.store, sizing.subject(shop)) is None


@pytest.mark.parametrize(("total", "again"), [(TOTAL, ()), (2 * TOTAL, (10,))])
def test_a_size_whose_delay_an_interruption_cost_is_measured_again_if_traces_are_left(
    total: int, again: tuple[int, ...]
) -> None:
    shop = recorded(profile=(5, 10, 20), total=total, size=None)
    for number, one in enumerate(seen({5: curve(5), 10: None, 20: curve(20)}), start=1):
        shop.run.observe(number, one)
    with disable_run_logger():
        sizing.measure_again(shop)
        sizing.measure_again(shop)
    assert sizing.current(shop).profile == (5, 10, 20, *again)


# on a real clock

on_a_clock = pytest.mark.usefixtures("prefect_api")

TRACES, PROFILE, CAP = 30, (5, 10), 15
DRIFT = 2.0


@dataclass(frozen=True)
class Nights:
    """Nights on one folder of traces, one store and one address of a model."""

    folder: Path

    def request(self, seed: int, url: str, n: int = TRACES, **settings: object) -> RunRequest:
        """A night on `n` traces of its own, in place of those of the night before."""
        source = self.folder / "traces"
        source.mkdir(exist_ok=True)
        (source / "day.jsonl").write_bytes(day_jsonl(World(0), n, seed, date(2026, 3, 2)))
        model = ModelSettings(model="openai/simulated/overload", api_base=url, hedge=0, retry_delay=0)
        sizes = SizeSettings(candidates=PROFILE, cap=CAP, drift=DRIFT)
        own = RunSettings.model_validate({"sizes": sizes, "model": model, **settings})
        return RunRequest(
            playbook="p", store=f"file://{self.folder}/store", source=Source(uris=(str(source),)), settings=own
        )


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    """An empty store."""
    return Nights(tmp_path)


def of_a_faster_server(curve: Measured) -> Measured:
    """The same curve, lower by so much that any machine leaves it, a busy one or an idle one."""
    faster = tuple(one.model_copy(update={"delay": (one.delay or 0) / 1000}) for one in curve.observations)
    return curve.model_copy(update={"run": "faster", "observations": faster})


def observations(request: RunRequest, result: RunResult) -> list[Observation]:
    """Of all batches of a run."""
    found = Run(open_store(request.store), result.run).observations(range(1, sizing_of(result).count + 1))
    assert None not in found
    return [one for one in found if one]


def sizing_of(result: RunResult) -> Sizing:
    assert result.sizing is not None
    return result.sizing


@on_a_clock
def test_a_server_that_became_slow_makes_the_curve_stale_and_the_third_night_measures_again(
    nights: Nights, tmp_path: Path
) -> None:
    with simulated_server(tmp_path) as server:
        url, port = server.url, urlsplit(server.url).port or 0
        request = nights.request(1, url)
        first = epoch(request)
    store = open_store(request.store)
    (curve,) = measured.all_known(store)
    assert (sizing_of(first).profile, curve.run, curve.stale) == (PROFILE, first.run, False)
    on_the_clock = observations(request, first)
    assert all(one.delay for one in on_the_clock), "every answer was paid for in this invocation"
    assert [one.cold for one in on_the_clock] == [True] + [False] * (len(on_the_clock) - 1)

    measured.remember(store, of_a_faster_server(curve))
    with simulated_server(tmp_path, port=port):
        second = epoch(nights.request(2, url, n=CAP))
    (drifted,) = measured.all_known(store)
    assert (sizing_of(second).profile, drifted.run, drifted.stale) == ((), "faster", True)
    assert drifted.drifts[-1].run == second.run
    assert drifted.drifts[-1].deviation > DRIFT

    with simulated_server(tmp_path, port=port):
        third = epoch(nights.request(3, url))
    (renewed,) = measured.all_known(store)
    assert sizing_of(third).profile == PROFILE
    assert (renewed.run, renewed.subject) == (third.run, curve.subject)


@on_a_clock
def test_an_iteration_that_an_earlier_invocation_paid_for_in_part_has_no_delay(nights: Nights, tmp_path: Path) -> None:
    """Even where the later one makes more calls than there are answers: rejected ones pay for nothing."""
    with simulated_server(tmp_path) as server:
        request = nights.request(1, server.url, n=10, batch_size=5, grouping="paper", merge="paper")
        server.set_faults("stage=curate,kind=500")
        failed, error = start("epoch", request)
        assert isinstance(error, CombeeError)
        assert failed.model_calls["reflect"] == 5
        unreadable = ("stage=curate,group=1", "stage=curate,group=2", "stage=merge")
        server.set_faults(*(f"{calls},kind=malformed,count=2" for calls in unreadable))
        done = epoch(request)

    assert done.run == failed.run
    first, second = Run(open_store(request.store), done.run).states()
    whole, of_second = (sum(receipt.accepted for receipt in state.receipts) for state in (first, second))
    asked = sum(done.model_calls.values()) - of_second
    assert asked >= whole, "as many calls as the whole batch takes, were it not for the store"
    resumed, fresh = observations(request, done)
    assert (resumed.delay, resumed.cold) == (None, True)
    assert fresh.delay
    assert not fresh.cold
