"""Nights and backfills in this process, on files, with the stand-in: which days are learned, in what order, once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

from combee_core.adapters.stores import open_store
from combee_core.config import Budget, DateRange, Nights, RunRequest, RunSettings, Source
from combee_core.day_runs import DayInput, choose
from combee_core.errors import BudgetSpent, RunHeld, UsageError
from combee_core.markers import marker_of
from combee_core.playbook import Playbook
from combee_core.records import RunResult
from combee_core.runs import Run
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from combee_core.versions import Version, Versions
from flows.backfill import backfill
from flows.nightly import nightly
from flows.terminal import restart, start
from tasks.reading import read_input

pytestmark = pytest.mark.usefixtures("prefect_api")

FIRST = date(2026, 3, 2)
DAYS = DateRange(first=FIRST, last=date(2026, 3, 4))
TRACES = 4


class Traces:
    """A folder with a file a day, and a store."""

    def __init__(self, folder: Path, days: Sequence[date]) -> None:
        self.folder, self.store = folder / "traces", folder / "store"
        self.folder.mkdir()
        for number, day in enumerate(days, start=1):
            self.path(day).write_bytes(day_jsonl(World(0), TRACES, number, day))

    def path(self, day: date) -> Path:
        return self.folder / f"{day}.jsonl"

    def rows(self, day: date) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path(day).read_text().splitlines()]

    def write(self, day: date, rows: Sequence[dict[str, Any]]) -> None:
        self.path(day).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def request(self, day: date | None = None, store: str = "store", **more: Any) -> RunRequest:
        source = Source(uris=(str(self.folder),), day=day)
        settings = RunSettings(batch_size=40, copies=1)
        return RunRequest(
            playbook="p", store=f"file://{self.folder.parent}/{store}", source=source, settings=settings, **more
        )

    def versions(self, store: str = "store") -> list[Version]:
        return list(Versions(open_store(self.request(store=store).store), "p").chain())


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    """Three days, the second of them empty, and a fourth that nobody asks for."""
    made = Traces(tmp_path, [FIRST, DAYS.days[1], DAYS.last, date(2026, 3, 5)])
    made.path(DAYS.days[1]).unlink()
    return made


def told(result: RunResult) -> list[tuple[int, str, int]]:
    return [(line.day.day, line.happened, line.traces) for line in result.days]


def calls(result: RunResult) -> int:
    return sum(result.model_calls.values())


def test_a_backfill_is_its_nights_in_order_and_what_is_learned_is_not_learned_again(traces: Traces) -> None:
    made = backfill(DAYS, traces.request())
    assert told(made) == [(2, "learned", 4), (3, "no traces", 0), (4, "learned", 4)]
    assert (made.accounting.learned, made.version) == (8, 2)
    assert calls(made) == sum(line.model_calls for line in made.days) > 0

    for day in DAYS.days:
        last = nightly(traces.request(day, store="nights"))
    assert last.digest == made.digest
    assert [v.digest for v in traces.versions()] == [v.digest for v in traces.versions("nights")]
    assert [v.day for v in traces.versions()] == [DAYS.last, FIRST]

    again = backfill(DAYS, traces.request())
    assert told(again) == [(2, "already learned", 4), (3, "no traces", 0), (4, "already learned", 4)]
    assert (calls(again), again.digest, again.version, again.note) == (0, made.digest, 2, "nothing new")

    # What comes late and what changes is learned by itself.
    rows = traces.rows(FIRST)
    late_one = {**traces.rows(date(2026, 3, 5))[0], "id": "late", "timestamp": rows[0]["timestamp"]}
    traces.write(FIRST, [{**rows[0], "output": "17.25"}, *rows[1:], late_one])
    late = backfill(DAYS, traces.request())
    assert told(late)[0] == (2, "supplement", 2)
    assert [line.happened for line in late.days[1:]] == ["no traces", "already learned"]
    run = Run(open_store(traces.request().store), late.days[0].run)
    plan, update = run.plan(), run.states()[0].update
    assert (update.day, update.withdrawn) == (FIRST, plan.withdrawn)
    assert (plan.withdrawn, sorted(item.id for item in plan.items)) == ((rows[0]["id"],), [rows[0]["id"], "late"])
    newest = traces.versions()[0]
    assert (newest.day, newest.as_of) == (FIRST, DAYS.last), "an older day never moves the playbook's day back"
    assert marker_of(open_store(traces.request().store), traces.request(FIRST)).traces == 5

    recorded = nightly(traces.request(FIRST))
    assert (calls(recorded), recorded.accounting.total, recorded.version) == (0, 2, 3)


def test_force_learns_days_anew_and_independent_days_read_no_other_days_lessons(traces: Traces) -> None:
    first = backfill(DAYS, traces.request())
    anew = backfill(DAYS, traces.request(again=True), independent=True)
    assert [line.happened for line in anew.days] == ["learned", "no traces", "learned"]
    assert {line.run for line in anew.days if line.run}.isdisjoint(line.run for line in first.days)
    store = open_store(traces.request().store)
    assert {Run(store, line.run).plan().base_version for line in anew.days if line.run} == {2}
    assert Playbook.model_validate(traces.versions()[0].state).bullets
    # The source was read once for all days: what was read is still there when the files are not.
    for path in traces.folder.iterdir():
        path.unlink()
    assert [len(read_input(traces.request(day).source).items) for day in DAYS.days] == [TRACES, 0, TRACES]


def test_a_day_that_cannot_be_learned_stops_a_backfill_which_is_gone_on_with_later(traces: Traces) -> None:
    store = open_store(traces.request().store)
    items = read_input(traces.request(DAYS.last).source)
    busy = choose(store, DayInput(traces.request(DAYS.last), items.items), 0).run
    assert busy is not None
    with busy.store.lease(busy.path("owner"), "somebody else"):
        result, error = start("backfill", traces.request(), days=DAYS, force=False, independent=False)
    assert isinstance(error, RunHeld)
    assert result.error is not None
    assert str(error).startswith("2026-03-04: ")
    assert told(result) == [(2, "learned", 4), (4, "failed", 4)]
    assert (result.days[1].run, result.days[1].model_calls) == (busy.key, 0), "its owner's calls are not ours"
    assert len(traces.versions()) == 1, "the days before it stay published"

    traces.path(DAYS.days[1]).write_bytes(day_jsonl(World(0), TRACES, 9, DAYS.days[1]))
    done, error = restart(result.flow_run_id)
    assert error is None
    assert done.flow_run_id == result.flow_run_id
    assert told(done) == [(2, "learned", 4), (3, "learned", 4), (4, "learned", 4)]
    assert done.days[0].model_calls == 0
    assert done.digest == traces.versions()[0].digest
    with get_client(sync_client=True) as client:
        of_it = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[UUID(done.flow_run_id)]))
        shown = [artifact for artifact in client.read_artifacts(artifact_filter=of_it) if artifact.key == "days"]
    assert len(shown) == 2, "one after the failure and one at the end"


def test_what_a_cap_of_the_day_leaves_of_a_backfill_waits_where_complete_batches_are_published(traces: Traces) -> None:
    free = backfill(DAYS, traces.request(store="free"))
    request, enough = traces.request(), free.days[0].model_calls + 1

    def capped(on_budget: str, calls: int = enough) -> RunRequest:
        update = {"day_budget": Budget(calls=calls), "on_budget": on_budget}
        return request.model_copy(update={"settings": request.settings.model_copy(update=update)})

    part, error = start("backfill", capped("publish"), days=DAYS, force=True, independent=False)
    assert error is None
    assert (part.status, part.error, part.version) == ("budget", None, 1)
    assert told(part) == [(2, "learned", 4), (3, "no traces", 0), (4, "stopped", 4)]
    assert [line.model_calls for line in part.days] == [enough - 1, 0, 1]
    assert (calls(part), part.accounting.total, part.accounting.deferred) == (enough, 8, 4)
    assert "not reached: 2026-03-04: a cap of all runs of a day in UTC" in part.note
    _, error = start("backfill", capped("hold"), days=DAYS, force=False, independent=False)
    assert isinstance(error, BudgetSpent)
    _, error = start("backfill", capped("publish"), days=DAYS, force=False, independent=False)
    assert isinstance(error, BudgetSpent), "it has published nothing"
    done, error = start("backfill", capped("publish", 1000), days=DAYS, force=True, independent=False)
    assert error is None
    assert (done.status, done.digest) == ("done", free.digest), "the same command goes on with what it began"


def test_a_night_first_learns_the_days_that_were_missed(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    traces = Traces(tmp_path, [yesterday - timedelta(days=n) for n in (2, 1, 0)])
    named = nightly(traces.request(), Nights(lookback=2, missed="skip"))
    assert [line.happened for line in named.days] == ["named only", "named only", "learned"]
    assert named.accounting.learned == TRACES
    night = nightly(traces.request(), Nights(lookback=1))
    assert [(line.day, line.happened) for line in night.days] == [
        (yesterday - timedelta(days=1), "learned"),
        (yesterday, "already learned"),
    ]
    assert (night.version, calls(night)) == (2, night.days[0].model_calls)
    assert [v.day for v in traces.versions()] == [yesterday - timedelta(days=1), yesterday]
    assert traces.versions()[0].as_of == yesterday
    rerun, _ = restart(night.flow_run_id)
    assert (calls(rerun), [line.happened for line in rerun.days]) == (0, ["learned", "already learned"])


def test_a_missed_day_that_is_dearer_than_a_run_may_be_does_not_keep_the_night_from_its_own(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    days = Traces(tmp_path, [yesterday - timedelta(days=1), yesterday])
    dear = days.rows(yesterday - timedelta(days=1))
    more = [{**row, "id": f"{row['id']}-{n}", "input": f"{row['input']} ({n})"} for row in dear for n in range(8)]
    days.write(yesterday - timedelta(days=1), [*dear, *more])
    asked = days.request()
    asked = asked.model_copy(update={"settings": asked.settings.model_copy(update={"budget": Budget(calls=12)})})
    night, error = start("nightly", asked, nights=Nights(lookback=1))
    assert "--max-calls" in str(error)
    assert [(line.day, line.happened) for line in night.days][-1] == (yesterday, "learned")
    assert days.versions()[0].as_of == yesterday


def test_a_night_that_a_cap_ends_after_a_missed_day_counts_what_its_own_day_has_cost(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    days = Traces(tmp_path, [yesterday - timedelta(days=1), yesterday])
    free, asked = nightly(days.request(yesterday, store="free")), days.request()
    update = {"day_budget": Budget(calls=calls(free) + 1), "on_budget": "publish"}
    asked = asked.model_copy(update={"settings": asked.settings.model_copy(update=update)})
    night, error = start("nightly", asked, nights=Nights(lookback=1))
    assert error is None
    assert [(line.happened, line.model_calls) for line in night.days] == [("learned", calls(free)), ("stopped", 1)]
    assert (calls(night), night.accounting.total, night.accounting.deferred) == (calls(free) + 1, 8, 4)


@pytest.mark.parametrize(
    ("day", "days", "word"),
    [
        (None, DateRange(first=date(2099, 1, 1), last=date(2099, 1, 1)), "2099-01-01 has not begun"),
        (FIRST, DAYS, "leave the source's own day empty"),
    ],
)
def test_a_backfill_that_makes_no_sense_is_refused(
    traces: Traces, day: date | None, days: DateRange, word: str
) -> None:
    with pytest.raises(UsageError, match=word):
        backfill(days, traces.request(day))
