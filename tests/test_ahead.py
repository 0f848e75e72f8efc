"""What a request would do, found out without doing it: days, batches, saved answers, and an untouched store."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from builders import ACE, EMPTY
from inline_nights import DAY, asked, learn, write_day

from combee_core import measured
from combee_core.adapters.ahead import Ahead
from combee_core.adapters.inputs import Input, load_days, load_input
from combee_core.adapters.stores import open_store
from combee_core.calls import FREE
from combee_core.client import Client
from combee_core.config import DateRange, RunRequest, RunSettings, Source
from combee_core.day_runs import DayInput, choose
from combee_core.errors import UsageError
from combee_core.markers import mark
from combee_core.measured import Measured
from combee_core.nights import accomplish, undertake, undertaking_name
from combee_core.outlook import DayWork
from combee_core.ports import Store
from combee_core.records import Cut, RunResult, Sizing
from combee_core.runs import Run
from combee_core.saving import SavedAnswers
from combee_core.simulation.model import SimulatedModel
from combee_core.sizes import Observation
from combee_core.versions import Version, Versions


def uri() -> str:
    return f"memory://{uuid.uuid4().hex}"


def work(request: RunRequest) -> DayWork:
    return Ahead(request).work(load_input(request.source))


def contents(store: Store) -> dict[str, bytes]:
    blobs = {key: store.read(key) for key in store.list("")}
    return {key: blob.data for key, blob in blobs.items() if blob}


# a first look


def test_a_new_store_is_left_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    request = asked(f"file://{folder}", write_day(tmp_path, 30), batch_size=20)
    ahead = Ahead(request)
    assert ahead.work(load_input(request.source)).traces == 30
    assert ahead.basis.bullets == ahead.version == 0
    assert not folder.exists()


def test_batches_are_cut_as_the_run_would_cut_them(tmp_path: Path) -> None:
    found = work(asked(uri(), write_day(tmp_path, 50), batch_size=20))
    assert [load.size for load in found.loads] == [20, 20, 10]
    assert (found.batching, found.note, found.bullets) == ("batch size 20, as given", "", None)


def test_the_evidence_is_that_of_each_traces_own_prompt(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 5), batch_size=5)
    (load,) = work(request).loads
    model = SimulatedModel()
    prompts = [
        ACE.reflect(EMPTY, one).prompt for one in load_input(request.source).pick(load_input(request.source).items)
    ]  # type: ignore[arg-type]
    whole = sum(model.count(message.content) for prompt in prompts for message in prompt.messages)
    assert sum(load.traces) + 5 * Ahead(request).basis.fixed["reflect"] == whole


def test_samples_are_rolled_out(tmp_path: Path) -> None:
    request = RunRequest(store=uri(), source=Source(kind="samples", uris=("world:30",)))
    found = work(request.model_copy(update={"settings": asked(uri(), batch_size=20).settings}))
    assert [(len(load.samples), load.traces) for load in found.loads] == [(20, ()), (10, ())]


def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path = write_day(tmp_path, 5)
    path.write_bytes(path.read_bytes() + b"{broken\n")
    found = work(asked(uri(), path, batch_size=5))
    assert (found.traces, found.left_out) == (5, 1)


def test_no_traces_are_no_work(tmp_path: Path) -> None:
    empty = tmp_path / "none.jsonl"
    empty.write_bytes(b"")
    found = work(asked(uri(), empty, batch_size=5))
    assert (found.traces, found.loads, found.note) == (0, (), "no traces")


def test_the_stand_in_is_free_and_its_tokens_are_estimated() -> None:
    basis = Ahead(asked(uri())).basis
    assert (basis.prices, basis.counted, basis.limit) == (FREE, False, None)


def test_a_limit_that_is_set_is_kept_to() -> None:
    assert Ahead(asked(uri(), model={"context_tokens": 4000})).basis.limit == 4000


def test_prompts_of_ones_own_are_counted_and_are_another_run(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reflector_no_truth.md").write_text("<<playbook>> <<policy>>")
    usual = asked(uri(), write_day(tmp_path, 10), batch_size=10)
    own = usual.model_copy(update={"settings": RunSettings(batch_size=10, prompts=str(tmp_path / "own"))})
    assert Ahead(own).basis.fixed["reflect"] < Ahead(usual).basis.fixed["reflect"]
    learn(usual)
    assert not work(usual).loads
    assert [load.size for load in work(own).loads] == [10]


def test_what_the_run_would_refuse_is_refused_now(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 5))
    real = Version(
        playbook="p",
        version=1,
        parent=0,
        digest="d",
        learner="ace",
        state=ACE.dump(EMPTY),
        learned_by=("openai/gpt-5",),
    )
    assert Versions(open_store(request.store), "p").publish(real)
    with pytest.raises(UsageError, match="the simulated stand-in would spoil it"):
        work(request)


# the batch size


def test_where_nothing_was_measured_the_profile_comes_first(tmp_path: Path) -> None:
    found = work(asked(uri(), write_day(tmp_path, 80)))
    assert [load.size for load in found.loads] == [5, 10, 20, 40, 5]
    assert "5, 10, 20 measure the batch size; 40 is taken for the rest" in found.batching


def remembered(request: RunRequest, *uris: str, stale: bool = False) -> None:
    """A curve that an earlier run has measured."""
    source = request.source.model_copy(update={"uris": uris or request.source.uris})
    subject = measured.subject_of(request.model_copy(update={"source": source}), "simulated/overload", ACE.fingerprint)
    seen = tuple(Observation(batch_size=n, delay=20 * n**0.25) for n in (5, 10, 20, 40))
    when = datetime(2026, 3, 1, tzinfo=UTC)
    known = Measured(subject=subject, total=200, run="r1", when=when, observations=seen, stale=stale)
    measured.remember(open_store(request.store), known)


def test_a_measured_curve_gives_batch_size_and_time(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 80))
    remembered(request)
    basis = Ahead(request).basis
    assert basis.fit is not None
    assert basis.measured_in == "r1"
    assert "measured in run r1" in work(request).batching


def test_a_stale_curve_gives_neither(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 80))
    remembered(request, stale=True)
    assert Ahead(request).basis.fit is None
    assert len(work(request).loads) == 5


def test_a_rate_without_a_source_takes_any_curve_of_the_model(tmp_path: Path) -> None:
    request = asked(uri())
    remembered(request, "/elsewhere")
    assert Ahead(request).basis.measured_in == "r1"
    other = request.model_copy(update={"source": Source(uris=("/here",))})
    assert Ahead(other).basis.fit is None


# runs that were begun


def test_batches_that_are_done_are_not_done_again(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 50), batch_size=20)
    learn(request, batches=1)
    found = work(request)
    assert [load.size for load in found.loads] == [20, 10]
    assert found.note == "goes on after 1 of 3 batches"
    assert found.bullets
    assert found.traces == 50


def test_a_run_that_only_has_to_publish_costs_nothing(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 20), batch_size=20)
    learn(request, batches=1)
    found = work(request)
    assert (found.loads, found.note) == ((), "goes on after 1 of 1 batches")


def test_a_run_that_a_cap_has_cut_only_has_to_publish(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 50), batch_size=20)
    learn(request, batches=1).run.end_early(Cut(batches=1, reason="the cap is reached"))
    found = work(request)
    assert (found.loads, found.note) == ((), "goes on after 1 of 1 batches")


def test_a_finished_run_is_named(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 20), batch_size=20)
    learn(request)
    assert (work(request).loads, work(request).note) == ((), "already learned (version 1)")


def test_again_begins_anew(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 20), batch_size=20)
    learn(request)
    found = work(request.model_copy(update={"again": True}))
    assert [load.size for load in found.loads] == [20]


def reflected(request: RunRequest, count: int) -> None:
    """Ask about the first traces, as a run that was killed had done."""
    store, found = open_store(request.store), load_input(request.source)
    client = Client(SimulatedModel(), SavedAnswers(store), request.settings.model, ACE.fingerprint)
    for one in found.pick(found.items[:count]):
        asyncio.run(client.ask(ACE.reflect(EMPTY, one), "r"))  # type: ignore[arg-type]


def test_answers_that_are_saved_are_not_paid_for_again(tmp_path: Path) -> None:
    request = asked(uri(), write_day(tmp_path, 20), batch_size=10)
    reflected(request, 7)
    found = work(request)
    assert [(len(load.traces), load.saved) for load in found.loads] == [(3, 7), (10, 0)]
    assert found.note == "7 reflections are saved"


def test_a_batch_that_was_recorded_needs_its_source_no_more(tmp_path: Path) -> None:
    path = write_day(tmp_path, 20)
    request = asked(uri(), path, batch_size=10)
    night = learn(request, batches=2)
    night.store.delete(night.run.path("state-0002.json"))
    found = Ahead(request).work(load_input(request.source))
    assert [load.size for load in found.loads] == [10]


# days


DAYS = tuple(DAY + timedelta(days=n) for n in range(3))


def daily(tmp_path: Path) -> tuple[RunRequest, dict[date, Input]]:
    """A request for a folder with two days of traces and one without."""
    for number, day in enumerate(DAYS[:2]):
        write_day(tmp_path / "traces", 20 + number, seed=number, day=day)
    request = asked(uri(), tmp_path / "traces", batch_size=20)
    return request, load_days(request.source, DAYS[0], DAYS[-1])


def dated(request: RunRequest, day: date) -> RunRequest:
    return request.model_copy(update={"source": request.source.model_copy(update={"day": day})})


def planned(request: RunRequest, found: Input, day: date) -> Run:
    run = choose(open_store(request.store), DayInput(dated(request, day), found.items, found.unread), 0).run
    assert run is not None
    return run


def test_each_day_has_its_own_traces(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    works = [Ahead(request).work(found[day], day) for day in DAYS]
    assert [(one.day, one.traces, one.note) for one in works] == [
        (DAYS[0], 20, ""),
        (DAYS[1], 21, ""),
        (DAYS[2], 0, "no traces"),
    ]


def test_a_learned_day_is_marked_and_late_traces_are_a_supplement(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    some = Input(found[DAYS[0]].everything[:15])
    mark(open_store(request.store), planned(request, some, DAYS[0]).plan(), 4)
    assert Ahead(request).work(some, DAYS[0]).note == "already learned (version 4)"
    late = Ahead(request).work(found[DAYS[0]], DAYS[0])
    assert (late.traces, [load.size for load in late.loads], late.note) == (5, [5], "late or changed traces")


def test_looking_at_days_writes_nothing(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    run = planned(request, found[DAYS[0]], DAYS[0])
    run.finish(RunResult(playbook="p", version=1, digest="d", run=run.key))
    before = contents(open_store(request.store))
    works = [Ahead(request).work(found[day], day) for day in DAYS]
    assert contents(open_store(request.store)) == before
    assert works[0].note == "already learned (version 1)"


def test_a_day_that_was_begun_is_gone_on_with(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    planned(request, found[DAYS[1]], DAYS[1]).begin_sizing(Sizing(total=21, batch_size=7, reason="7, as given"))
    seen = Ahead(request).work(found[DAYS[1]], DAYS[1])
    assert [load.size for load in seen.loads] == [7, 7, 7]
    assert seen.note == "goes on after 0 of 3 batches"


def test_a_day_that_is_learned_again_is_learned_whole(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    run = planned(request, found[DAYS[0]], DAYS[0])
    run.finish(RunResult(playbook="p", version=1, digest="d", run=run.key))
    again = Ahead(request).work(found[DAYS[0]], DAYS[0], again=True)
    assert (again.traces, [load.size for load in again.loads]) == (20, [20])


def test_a_forced_backfill_goes_on_with_its_own_runs_alone(tmp_path: Path) -> None:
    request, found = daily(tmp_path)
    planned(request, found[DAYS[0]], DAYS[0]).begin_sizing(Sizing(total=20, batch_size=7))
    store, days = open_store(request.store), DateRange(first=DAYS[0], last=DAYS[1])
    name = undertaking_name(store, request, days, force=True, independent=False)
    fresh = Ahead(request).work(found[DAYS[0]], DAYS[0], attempt=name)
    assert ([load.size for load in fresh.loads], fresh.note) == ([20], "")
    assert undertake(store, request, days, force=True, base=None).name == name
    its = choose(store, DayInput(dated(request, DAYS[0]), found[DAYS[0]].items), 0, attempt=name).run
    assert its is not None
    assert "goes on" in Ahead(request).work(found[DAYS[0]], DAYS[0], attempt=name).note
    its.finish(RunResult(playbook="p", version=1, digest="d", run=its.key))
    mark(store, its.plan(), 1)
    assert Ahead(request).work(found[DAYS[0]], DAYS[0], attempt=name).note == "already learned (version 1)"
    accomplish(store, name)
    assert undertaking_name(store, request, days, force=True, independent=False) != name
