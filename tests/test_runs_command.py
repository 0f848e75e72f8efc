"""`combee runs` as it is read in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from run_records import items, request

from combee_core import history
from combee_core.adapters.stores import open_store
from combee_core.cli import main
from combee_core.history import Status
from combee_core.records import Failure, Sizing
from combee_core.runs import find_or_plan

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FLOW_RUN = "0b844294-6464-47a4-8467-004add3ab91c"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


def ended(uri: str, status: Status, failure: Failure | None = None) -> str:
    run = find_or_plan(open_store(uri), request(playbook="desk"), items(4), (), 0)
    run.begin_sizing(Sizing(total=4, batch_size=2))
    history.end(run, history.begin(run, run.plan(), FLOW_RUN, "1", NOON), status, NOON, failure)
    return run.key


def shown(uri: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["runs", "--store", uri]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("columns", "last"), [(80, "traces"), (90, "batches"), (300, "flow run")])
def test_columns_that_do_not_fit_are_left_out_whole(
    columns: int, last: str, uri: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ended(uri, "done")
    monkeypatch.setenv("COLUMNS", str(columns))
    head, row = shown(uri, capsys)
    assert head.endswith(last)
    assert row.startswith(f"{key}  done   desk")
    assert max(len(head), len(row)) <= columns


def test_a_failed_run_says_once_what_failed_and_how_to_go_on(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended(uri, "failed", Failure(stage="curate", item="curate-g02", message="curate-g02 failed: no JSON"))
    assert shown(uri, capsys)[2:] == [
        "    curate: curate-g02 failed: no JSON",
        f"    go on: combee rerun {FLOW_RUN}",
    ]


def test_a_run_that_a_cap_holds_is_gone_on_with_under_a_higher_one(
    uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    held = Failure(stage="budget", item="--max-calls", message="budget: 9 of 9 calls; raise the cap to go on")
    ended(uri, "budget", held)
    assert shown(uri, capsys)[2:] == [
        "    budget: 9 of 9 calls; raise the cap to go on",
        f"    go on, with a higher cap: combee rerun {FLOW_RUN}",
    ]


def test_a_run_that_published_what_was_complete_at_a_cap_says_where_the_rest_is(
    uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(uri, "budget")
    assert shown(uri, capsys)[2:] == [
        "    what was complete at the cap is published; the rest, if any, is in the backlog"
    ]
