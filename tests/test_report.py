"""What people look at in the UI: bounded, and honest about the rest."""

from __future__ import annotations

from base64 import b64decode
from datetime import date
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact
from prefect.runtime import flow_run
from run_records import DAY, KEY, plan, request

from combee_core.batch_size import decide
from combee_core.config import SizeSettings
from combee_core.records import DayResult, Happened, RunResult, TraceFate
from combee_core.sizes import Decision, Observation
from combee_core.types import Unread
from tasks import report


def result(count: int, left_out: int = 0) -> RunResult:
    fates = tuple(TraceFate(trace_id=f"t{n:06d}", fate="failed", reason="no JSON") for n in range(count))
    files = tuple(Unread(where=f"f{n}", reason="unknown format") for n in range(left_out))
    return RunResult(playbook="p", version=1, digest="d", run=KEY, fates=fates, left_out=files)


def test_a_short_list_is_shown_whole() -> None:
    assert [row["trace"] for row in report.unlearned(result(2, 1))] == ["t000000", "t000001", "f0"]
    assert len(report.unlearned(result(report.ROWS))) == report.ROWS


def test_of_a_long_list_the_beginning_is_shown_with_how_many_more_there_are_and_where() -> None:
    rows = report.unlearned(result(50_000))
    assert len(rows) == report.ROWS + 1
    assert rows[-2]["trace"] == f"t{report.ROWS - 1:06d}"
    assert rows[-1]["trace"] == "… and 49,800 more"
    assert "backlog/p/" in str(rows[-1]["why"])
    assert f"runs/{KEY}/plan.json" in str(rows[-1]["why"])


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_rows_and_the_number_of_the_rest_add_up(count: int) -> None:
    rows = report.unlearned(result(count), most=4)
    shown = [row for row in rows if row["fate"]]
    rest = int(str(rows[-1]["trace"]).split()[2]) if len(rows) > len(shown) else 0
    assert (len(shown), len(shown) + rest) == (min(count, 4), count)


def day(number: int, happened: Happened = "learned") -> DayResult:
    return DayResult(day=date(2026, 3, number), happened=happened, traces=20, version=number)


def test_each_day_has_a_row_and_of_a_long_list_only_those_on_which_something_happened() -> None:
    lines = [day(1), day(2, "no traces"), day(3, "already learned"), day(4, "failed"), day(5)]
    assert [row["day"] for row in report.day_rows(lines)] == [f"2026-03-0{n}" for n in range(1, 6)]
    assert [row["day"] for row in report.day_rows(lines, most=4)] == ["2026-03-01", "2026-03-04", "2026-03-05"]
    assert [row["day"] for row in report.day_rows(lines, most=2)] == ["2026-03-04", "2026-03-05"]


def test_the_columns_of_the_days_are_words() -> None:
    (row,) = report.day_rows([day(4, "failed")])
    assert list(row) == ["day", "what happened", "traces", "model calls", "version", "run", "note"]


def test_the_days_add_up_in_a_sentence() -> None:
    lines = [day(1).model_copy(update={"model_calls": 31}), day(2).model_copy(update={"model_calls": 1_000})]
    assert report.days_told("p", lines, 2) == "p: 2 days, 40 traces, 1,031 model calls"
    assert report.days_told("p", lines[:1], 1) == "p: 1 day, 20 traces, 31 model calls"
    assert report.days_told("p", lines, 1).endswith("; 1 of them are shown")


def test_an_artifact_says_which_playbook_day_and_run_it_is_about() -> None:
    dated = plan().model_copy(update={"request": request(source=DAY)})
    assert report.about(dated) == f"p, 2026-03-02, run {KEY}"


# on a server


def artifacts(show: Any) -> dict[str, Artifact]:
    """The artifacts that a flow makes by `show`, by key."""

    @flow(persist_result=False)
    def showing() -> str:
        show()
        return str(flow_run.id)

    made = showing()
    with get_client(sync_client=True) as client:
        asked = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[made]))
        return {str(found.key): found for found in client.read_artifacts(artifact_filter=asked)}


def decision() -> Decision:
    delays = {5: 52.0, 10: 55.0, 20: 61.0, 40: 78.0, 80: 110.0}
    measured = [Observation(batch_size=size, delay=delay) for size, delay in delays.items()]
    return decide(measured, SizeSettings(), 240)


def test_the_fit_is_a_table_of_what_was_measured_and_a_picture_of_the_curve(prefect_api: str) -> None:
    found = artifacts(lambda: report.fit(decision()))
    assert set(found) == {"batch-size", "batch-size-curve"}
    assert found["batch-size"].type == "table"
    assert str(found["batch-size"].description).startswith(f"{decision().reason}. delay: ")
    rows = str(found["batch-size"].data)
    assert all(f'"{size}"' in rows for size in (5, 10, 20, 40, 80))
    text = str(found["batch-size-curve"].data)
    head, _, rest = text.partition("(data:image/svg+xml;base64,")
    assert head.endswith("![batch size]")
    assert b"<svg" in b64decode(rest.partition(")")[0])


def test_the_accounting_of_a_night_of_failures_stays_small(prefect_api: str) -> None:
    found = artifacts(lambda: report.accounting(result(30_000), "p, run x"))
    assert set(found) == {"accounting", "not-learned", "cost"}
    assert len(str(found["not-learned"].data)) < 50_000
    assert all(str(one.description).startswith("p, run x: ") for one in found.values())


def test_where_everything_was_learned_no_list_of_the_rest_is_made(prefect_api: str) -> None:
    assert set(artifacts(lambda: report.accounting(result(0), "p"))) == {"accounting", "cost"}


def test_progress_is_one_artifact_that_grows(prefect_api: str) -> None:
    def show() -> None:
        progress = report.Progress(4)
        for done in (0, 1, 4):
            progress.show(done)
        report.Progress(0).show(0)

    (found,) = artifacts(show).values()
    assert (found.type, found.data, found.description) == ("progress", 100.0, "4 of 4 batches")
