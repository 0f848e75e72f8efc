"""The flows in this process, on files, with the stand-in."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from uuid import UUID

import pytest
from audited import completed, unaccounted
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId
from prefect.states import Running

from combee_core.adapters.stores import open_store
from combee_core.adapters.workshop import Place, open_workshop
from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import RunHeld, StoreError, UsageError
from combee_core.markers import marker_of
from combee_core.playbook import Playbook
from combee_core.records import RunResult
from combee_core.runs import Run, run_of
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Version, Versions
from flows.epoch import epoch
from flows.nightly import nightly
from flows.terminal import restart, start

pytestmark = pytest.mark.usefixtures("prefect_api")

DAY = date(2026, 3, 2)


@pytest.fixture
def request_of_a_day(tmp_path: Path) -> RunRequest:
    """A day of 12 runs, in batches of 8."""
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 12, 0, DAY))
    return RunRequest(
        playbook="p",
        store=f"file://{tmp_path}/store",
        source=Source(uris=(str(tmp_path / "day.jsonl"),)),
        settings=RunSettings(batch_size=8),
    )


def on_day(request: RunRequest, day: date | None) -> RunRequest:
    return request.model_copy(update={"source": request.source.model_copy(update={"day": day})})


def versions(request: RunRequest) -> Versions:
    return Versions(open_store(request.store), request.playbook)


def test_an_epoch_publishes_one_version_for_all_its_batches(request_of_a_day: RunRequest) -> None:
    result = epoch(request_of_a_day)
    assert result.version == 1
    assert len(result.groups) == 2
    assert result.accounting.learned == 12
    latest = versions(request_of_a_day).latest()
    assert latest is not None
    assert (latest.digest, latest.run, latest.parent) == (result.digest, result.run, 0)
    assert latest.learned_by == ("simulated/overload",)
    bullets = list(Playbook.model_validate(latest.state).bullets)
    assert bullets
    assert {b.created for b in bullets} == {1}


def test_a_finished_epoch_is_a_no_op_and_again_starts_a_new_one(request_of_a_day: RunRequest) -> None:
    first = epoch(request_of_a_day)
    same = epoch(request_of_a_day)
    assert (same.run, same.digest, sum(same.model_calls.values())) == (first.run, first.digest, 0)
    new = epoch(request_of_a_day.model_copy(update={"again": True}))
    assert new.run != first.run
    base = open_workshop(Place(store=open_store(request_of_a_day.store).uri, run=new.run)).plan.base_version
    assert base == first.version


def test_a_night_learns_its_day_alone_and_marks_it(request_of_a_day: RunRequest) -> None:
    store = open_store(request_of_a_day.store)
    empty = nightly(on_day(request_of_a_day, date(2026, 3, 1)))
    assert empty.note == "no traces for 2026-03-01"
    assert (empty.version, empty.accounting.total, versions(request_of_a_day).latest()) == (0, 0, None)
    night = nightly(on_day(request_of_a_day, DAY))
    assert night.accounting.learned == 12
    latest = versions(request_of_a_day).latest()
    assert latest is not None
    assert latest.as_of == DAY
    markers = store.list("days/p/")
    assert [key.rsplit("/", 1)[1] for key in markers] == ["2026-03-02.json"], "an empty day stays open"
    marker = marker_of(store, on_day(request_of_a_day, DAY))
    assert [(one.run, one.version, len(one.items)) for one in marker.runs] == [(night.run, 1, 12)]
    assert nightly(on_day(request_of_a_day, DAY)).digest == night.digest
    assert len(completed(store)) == 3
    assert not unaccounted(store), "a night with nothing to do shows what became of its traces too"


def test_an_empty_day_asks_nobody_not_even_whether_the_model_is_there(request_of_a_day: RunRequest) -> None:
    nobody = ModelSettings(model="openai/nobody", api_base="http://127.0.0.1:9/v1")
    settings = request_of_a_day.settings.model_copy(update={"model": nobody})
    request = request_of_a_day.model_copy(update={"settings": settings})
    assert nightly(on_day(request, date(2026, 3, 1))).note == "no traces for 2026-03-01"


def test_a_night_without_a_day_takes_the_day_before_it_starts(request_of_a_day: RunRequest, tmp_path: Path) -> None:
    result = nightly(request_of_a_day)
    assert result.accounting.total == 0
    assert "no traces for " in result.note
    assert date.fromisoformat(result.note.removeprefix("no traces for ")) < datetime.now().date()


def test_three_reflections_are_one_group_and_the_result_says_so(request_of_a_day: RunRequest) -> None:
    source = request_of_a_day.source.model_copy(update={"limit": 3})
    result = epoch(request_of_a_day.model_copy(update={"source": source}))
    assert result.groups == (1,)
    assert result.note == "single group: fewer than 4 reflections"
    assert (result.model_calls["curate"], result.model_calls["merge"]) == (1, 0)


def test_the_stand_in_is_kept_out_of_a_playbook_that_a_model_has_learned(request_of_a_day: RunRequest) -> None:
    state = Playbook().model_dump(mode="json")
    real = Version(
        playbook="p", version=1, parent=0, digest="d", learner="ace", state=state, learned_by=("openai/gpt-4o",)
    )
    assert versions(request_of_a_day).publish(real)
    with pytest.raises(UsageError, match="openai/gpt-4o"):
        epoch(request_of_a_day)


def test_a_wrong_model_stops_before_the_first_call_and_says_where(request_of_a_day: RunRequest) -> None:
    model = ModelSettings(model="openai/x", api_base="http://127.0.0.1:9/v1")
    settings = request_of_a_day.settings.model_copy(update={"model": model})
    result, error = start("epoch", request_of_a_day.model_copy(update={"settings": settings}))
    assert error is not None
    assert result.error is not None
    assert "127.0.0.1:9" in result.error.message
    assert (result.version, result.digest, result.accounting.deferred) == (None, None, 12)


def interrupted(request: RunRequest) -> RunResult:
    """A finished run from which everything after the first batch has been taken away, as after a kill."""
    result = epoch(request)
    store = open_store(request.store)
    run = Run(store, result.run)
    for key in (run.path("state-0002.json"), run.path("result.json"), "playbooks/p/latest.json"):
        store.delete(key)
    return result


def test_a_run_that_died_is_gone_on_with_and_its_old_flow_run_is_marked_crashed(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(died.flow_run_id), Running(), force=True)
        resumed = epoch(request_of_a_day)
        state = client.read_flow_run(UUID(died.flow_run_id)).state
    assert (resumed.digest, resumed.run) == (died.digest, died.run)
    assert resumed.flow_run_id != died.flow_run_id
    assert sum(resumed.model_calls.values()) == 0
    assert state is not None
    assert state.is_crashed()


def test_a_rerun_keeps_the_flow_run_and_its_plan_even_if_more_traces_have_come(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    path = Path(request_of_a_day.source.uris[0])
    path.write_bytes(path.read_bytes() + day_jsonl(World(0), 3, 7, DAY))
    result, error = restart(died.flow_run_id)
    assert error is None
    assert (result.flow_run_id, result.digest, result.accounting.total) == (died.flow_run_id, died.digest, 12)


def test_an_iterations_id_stands_for_the_run_that_it_is_part_of(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    of_it = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[UUID(died.flow_run_id)]))
    with get_client(sync_client=True) as client:
        mine = next(run for run in client.read_flow_runs(flow_run_filter=of_it) if run.name == "iteration-1")
    result, _ = restart(str(mine.id))
    assert result.flow_run_id == died.flow_run_id


@pytest.mark.parametrize("wrong", ["no-id", "00000000-0000-0000-0000-000000000000"])
def test_a_rerun_of_nothing_is_wrong_use(wrong: str) -> None:
    with pytest.raises(UsageError, match="knows no flow run"):
        restart(wrong)


def test_a_held_run_turns_a_second_one_away(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    run = run_of(open_store(request_of_a_day.store), died.flow_run_id)
    assert run is not None
    with run.store.lease(run.path("owner"), "flow run of somebody else"), pytest.raises(RunHeld, match="somebody else"):
        epoch(request_of_a_day)


def test_a_changed_trace_is_named_when_a_planned_batch_needs_it(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    store = open_store(request_of_a_day.store)
    store.delete(Run(store, died.run).path("batch-0002.json"))
    path = Path(request_of_a_day.source.uris[0])
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:9]) + b"\n")
    _, error = restart(died.flow_run_id)
    assert isinstance(error, UsageError)
    assert "day0-00010 is gone from the source" in str(error)


def test_a_day_that_was_empty_is_learned_when_its_traces_come_late(request_of_a_day: RunRequest) -> None:
    path = Path(request_of_a_day.source.uris[0])
    late = path.read_bytes()
    path.write_bytes(b"")
    request = on_day(request_of_a_day, DAY)
    assert nightly(request).accounting.total == 0
    path.write_bytes(late)
    assert nightly(request).accounting.learned == 12


@pytest.mark.parametrize(
    ("day", "zone", "word"), [(date(2099, 1, 1), "UTC", "has not begun"), (None, "Mars/X", "time zone")]
)
def test_a_day_that_cannot_be_learned_is_refused(
    request_of_a_day: RunRequest, day: date | None, zone: str, word: str
) -> None:
    source = request_of_a_day.source.model_copy(update={"day": day, "timezone": zone})
    with pytest.raises(UsageError, match=word):
        nightly(request_of_a_day.model_copy(update={"source": source}))


def test_plain_rows_under_other_names_are_read_with_a_field_map(tmp_path: Path) -> None:
    rows = [{"run": n, "q": f"question {n}", "a": "x", "mark": 0, "why": f"say {n} instead"} for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    fields = {"id": "run", "input": "q", "output": "a", "score": "mark", "feedback": "why"}
    source = Source(uris=(str(tmp_path / "rows.jsonl"),), fields=fields)
    result = epoch(RunRequest(store=f"file://{tmp_path}/store", source=source))
    assert result.accounting.total == 4


def test_files_that_nobody_can_read_are_counted_and_named(request_of_a_day: RunRequest, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "day.jsonl").write_bytes((tmp_path / "day.jsonl").read_bytes())
    (tmp_path / "folder" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    source = request_of_a_day.source.model_copy(update={"uris": (str(tmp_path / "folder"),)})
    result = epoch(request_of_a_day.model_copy(update={"source": source}))
    assert [Path(file.where).name for file in result.left_out] == ["picture.png"]
    assert result.accounting.learned == 12


def test_a_live_run_is_not_rerun(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    run = run_of(open_store(request_of_a_day.store), died.flow_run_id)
    assert run is not None
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(died.flow_run_id), Running(), force=True)
        with run.store.lease(run.path("owner"), "flow run of somebody"), pytest.raises(RunHeld):
            restart(died.flow_run_id)
        state = client.read_flow_run(UUID(died.flow_run_id)).state
    assert state is not None
    assert state.is_running()


def test_a_damaged_plan_is_never_replaced_under_the_states_that_rest_on_it(request_of_a_day: RunRequest) -> None:
    died = interrupted(request_of_a_day)
    store = open_store(request_of_a_day.store)
    store.delete(Run(store, died.run).path("plan.json"))
    with pytest.raises(StoreError, match="no plan; move the whole folder away"):
        epoch(request_of_a_day)
