"""The backlog through nights: filed with its place, tried again later, taken out once learned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from command import Combee
from simserver import SimulatedServer, simulated_server

from combee_core import backlog
from combee_core.adapters.stores import open_store
from combee_core.cli import dry_run
from combee_core.config import Budget, ModelSettings, Nights, RunRequest, RunSettings, Source
from combee_core.history import recent
from combee_core.outcome import NothingLearned
from combee_core.records import Batch
from combee_core.simulation.day import day as runs_of_day
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.epoch import epoch
from flows.measuring import profile
from flows.nightly import nightly

pytestmark = pytest.mark.usefixtures("prefect_api")

DAY = date(2026, 3, 2)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path) as running:
        yield running


@pytest.fixture
def request_of_a_day(tmp_path: Path, server: SimulatedServer, monkeypatch: pytest.MonkeyPatch) -> RunRequest:
    """A night on 8 runs of one day, with a model over HTTP that can be told to refuse."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 8, 0, DAY))
    model = ModelSettings(model="openai/simulated/overload", api_base=server.url, retry_delay=0.05)
    return RunRequest(
        playbook="p",
        store=f"file://{tmp_path}/store",
        source=Source(uris=(str(tmp_path / "day.jsonl"),), day=DAY),
        settings=RunSettings(batch_size=8, model=model),
    )


def on_the_next_day(request: RunRequest, days: int = 1) -> RunRequest:
    source = request.source.model_copy(update={"day": DAY + timedelta(days=days)})
    return request.model_copy(update={"source": source})


def foreseen(request: RunRequest, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """The calls that a dry run of the night tells, by stage."""
    capsys.readouterr()
    assert dry_run.of_night(request, Nights(), as_json=True) == 0
    calls = json.loads(capsys.readouterr().out)["total"]["calls"]
    return {stage: count["expected"] for stage, count in calls.items()}


def test_what_a_night_could_not_learn_is_learned_by_the_next_one_and_costs_nothing_afterwards(
    request_of_a_day: RunRequest, server: SimulatedServer, combee: Combee, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(request_of_a_day.store)
    question = runs_of_day(World(0), 8, 0)[3].task.splitlines()[-1]
    server.set_faults(f"stage=reflect,contains={question.split(',')[0]},kind=refusal")

    first = nightly(request_of_a_day)
    (entry,) = backlog.entries(store, "p")

    assert first.accounting.refused == 1, "it was not tried again in the night that filed it"
    assert (entry.fate, entry.run, entry.tries) == ("refused", first.run, 0)
    blob = store.read(entry.place)
    assert blob is not None
    assert entry.trace_id in {one.trace_id for one in Batch.model_validate_json(blob.data).trajectories}
    listed = combee("backlog", "list", "--playbook", "p", "--store", store.uri, "--json").json["entries"]
    assert [(one["trace_id"], one["next"]) for one in listed] == [(entry.trace_id, "the next night tries it again")]

    again = nightly(on_the_next_day(request_of_a_day))
    (entry,) = backlog.entries(store, "p")
    assert (entry.tries, entry.fate) == (1, "refused")
    assert "backlog: 1 tried again, 0 settled, 1 left in it" in again.note

    server.set_faults()
    told = foreseen(on_the_next_day(request_of_a_day, 2), capsys)
    assert {stage for stage, calls in told.items() if calls} == {"reflect", "curate"}
    learned = nightly(on_the_next_day(request_of_a_day, 2))
    assert learned.model_calls == told, "as a dry run has said"
    calls = len(server.log())
    idle = nightly(on_the_next_day(request_of_a_day, 3))

    assert "backlog: 1 tried again, 1 settled, 0 left in it" in learned.note
    assert list(backlog.entries(store, "p")) == []
    assert len(server.log()) == calls
    assert "backlog" not in idle.note
    tried = [(seen.state, seen.failure) for seen in recent(store, "p") if seen.what == "backlog"]
    assert tried == [("done", None)] * 2, "the one that settled nothing was no failure of the night"


def test_a_person_retries_or_drops_what_waits(
    request_of_a_day: RunRequest, server: SimulatedServer, combee: Combee
) -> None:
    questions = [run.task.splitlines()[-1].split(",")[0] for run in runs_of_day(World(0), 8, 0)[3:5]]
    server.set_faults(*(f"stage=reflect,contains={question},kind=refusal" for question in questions))
    nightly(request_of_a_day)
    first, second = backlog.entries(open_store(request_of_a_day.store), "p")
    server.set_faults()
    where = ("--playbook", "p", "--store", request_of_a_day.store)
    unknown = combee("backlog", "retry", "nobody", *where)
    assert (unknown.code, "nothing is filed as nobody" in unknown.err) == (2, True)

    retried = combee("backlog", "retry", first.id, *where, "--json")
    assert retried.code == 0, retried.err
    assert retried.json["accounting"]["learned"] == retried.json["model_calls"]["reflect"] == 1
    assert [entry.id for entry in backlog.entries(open_store(request_of_a_day.store), "p")] == [second.id]

    calls = len(server.log())
    dropped = combee("backlog", "drop", second.trace_id, *where)
    assert dropped.code == 0, dropped.err
    assert "0 traces in the backlog" in combee("backlog", "list", *where).out
    assert len(server.log()) == calls


def test_the_days_of_a_night_stand_where_its_backlog_meets_a_cap_or_a_dead_model(
    request_of_a_day: RunRequest, server: SimulatedServer
) -> None:
    store = open_store(request_of_a_day.store)
    question = runs_of_day(World(0), 8, 0)[3].task.splitlines()[-1]
    server.set_faults(f"stage=reflect,contains={question.split(',')[0]},kind=refusal")
    nightly(request_of_a_day)

    poor = request_of_a_day.settings.model_copy(update={"day_budget": Budget(calls=1)})
    capped = nightly(on_the_next_day(request_of_a_day.model_copy(update={"settings": poor})))
    assert (capped.status, capped.error, capped.version) == ("budget", None, 1)
    assert "backlog: waits for another night: budget:" in capped.note
    assert "(--max-calls-per-day)" in capped.note

    server.set_faults("kind=401")
    dead = nightly(on_the_next_day(request_of_a_day, 2))
    assert (dead.status, dead.error, dead.version) == ("done", None, 1)
    assert "backlog: could not be tried again: " in dead.note
    assert [entry.tries for entry in backlog.entries(store, "p")] == [0], "that was no try"


def test_a_night_whose_traces_were_all_refused_fails_loudly_files_them_and_marks_its_day(
    request_of_a_day: RunRequest, server: SimulatedServer
) -> None:
    store = open_store(request_of_a_day.store)
    server.set_faults("stage=reflect,kind=refusal")
    with pytest.raises(NothingLearned, match=r"of 8 traces 8 refused; the first, .* combee backlog list") as it:
        nightly(request_of_a_day)
    assert (it.value.result.accounting.refused, it.value.result.version) == (8, 0)
    assert len(list(backlog.entries(store, "p"))) == 8
    assert len(store.list("days/p/")) == 1, "what could not be learned is the backlog's now"
    (seen,) = recent(store, "p")
    assert (seen.state, seen.failure) == ("barren", it.value.result.error)
    calls = len(server.log())
    with pytest.raises(NothingLearned):
        epoch(request_of_a_day)
    assert len(server.log()) == calls
    with pytest.raises(NothingLearned, match="of 8 traces 8 refused"):
        profile(request_of_a_day)
