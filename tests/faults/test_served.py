"""Runs of `combee serve` that something happens to: cancelled or retried in the UI, lost with their machine."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from command import Combee
from deployed import Deployed, cancel, ended, retry, state_of, unless_failed
from disturbed import IN_FLIGHT, TRACES, Night, until
from simserver import simulated_server

from combee_core.config import RunSettings, Source
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World


def test_cancel_of_a_served_night_saves_what_is_in_flight_publishes_nothing_and_is_gone_on_with(
    combee: Combee, deployed: Deployed, tmp_path: Path
) -> None:
    with simulated_server(tmp_path, latency=2.0) as server:
        night = Night(server, f"file://{tmp_path}/store", tmp_path)
        deployed.serve(night.request)
        stopped, calls = deployed.order(), [0]
        for _ in range(2):
            until(lambda: night.calls >= calls[-1] + IN_FLIGHT, lambda: unless_failed(stopped))
            asked = night.calls
            cancel(stopped)
            assert ended(stopped) == "Cancelled", deployed.logs()
            night.settled()
            calls.append(night.calls)
            assert night.calls <= asked + IN_FLIGHT, "what waited for its turn is asked"
            assert night.saved == night.calls, "an answer in flight was lost"
            assert night.latest is None
            if len(calls) == 2:
                retry(stopped)
        done = combee("rerun", stopped, "--json")
        assert done.code == 0, done.err
        print(f"\ncancelled after {calls[1:]} calls; in all {night.calls}, repeated {night.repeated}")
        assert state_of(stopped).is_completed()
        assert night.repeated == 0
        assert night.versions == [1]
        assert night.accounted


def test_nights_that_were_killed_or_cancelled_are_picked_up_in_order_by_the_next(
    combee: Combee, deployed: Deployed, tmp_path: Path
) -> None:
    today, traces = datetime.now(UTC).date(), tmp_path / "traces"
    days = [today - timedelta(days=back) for back in (3, 2, 1)]
    traces.mkdir()
    for number, day in enumerate(days):
        (traces / f"{day}.jsonl").write_bytes(day_jsonl(World(0), TRACES, number, day))
    with simulated_server(tmp_path, latency=0.5) as server:
        night = Night(server, f"file://{tmp_path}/store", tmp_path)
        every = night.request.model_copy(update={"source": Source(uris=(str(traces),))})
        serving = deployed.serve(every)
        killed = deployed.order(due=datetime.combine(days[1], time(3, 30), UTC))
        until(lambda: night.calls >= IN_FLIGHT + 2, lambda: unless_failed(killed))
        deployed.kill(serving)
        saved = night.saved
        night.settled()
        lost = night.calls - saved
        assert state_of(killed).name == "Running", "nobody has noticed yet"

        deployed.serve(every)
        cancelled = deployed.order(due=datetime.combine(days[2], time(3, 30), UTC))
        assert ended(cancelled) == "Cancelled", "the dead run holds the only place"

        done = combee("nightly", "--config", deployed.file, "--json")
        assert done.code == 0, done.err
        happened = [(line["day"], line["happened"], line["traces"]) for line in done.json["days"]]
        print(f"\nkilled with {lost} calls in flight; the next night: {happened}, repeated {night.repeated}")
        assert happened == [(str(day), "learned", TRACES) for day in days]
        assert state_of(killed).name == "Crashed"
        assert night.versions == [3, 2, 1]
        assert night.repeated <= lost <= IN_FLIGHT
        assert night.accounted


def test_retry_of_a_served_night_asks_for_the_group_that_failed_and_the_merge_alone(
    combee: Combee, deployed: Deployed, tmp_path: Path
) -> None:
    with simulated_server(tmp_path, faults=["stage=curate,group=2,kind=500"]) as server:
        night = Night(server, f"file://{tmp_path}/store", tmp_path)
        model = night.request.settings.model.model_copy(update={"retry_delay": 0.1})
        settings = RunSettings(batch_size=TRACES, merge="paper", model=model)
        deployed.serve(night.request.model_copy(update={"settings": settings}))
        failed = deployed.order()
        assert ended(failed) == "Failed"
        explained = combee("rerun", failed, "--explain").out
        assert "to do: groups curate-g02; the merge of batch 1; then one version is published" in explained
        before = night.calls
        server.set_faults()
        retry(failed)
        assert ended(failed) == "Completed", deployed.logs()
        assert night.calls - before == 2
        assert "to do: groups curate-g02; the merge of batch 1; then one version is published" in deployed.logs()
