"""Errors of runs that nobody looks at: each is told once, however many flows it passes through."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hooks import hook
from prefect import flow
from run_records import request

from combee_core.config import RunRequest, RunSettings, Source
from combee_core.errors import CombeeError, RunError, RunStopped, UsageError, is_told, mark_told
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.epoch import epoch
from tasks import alarms

pytestmark = pytest.mark.usefixtures("prefect_api")


@flow(name="inner-of-two")
def inner(error: Exception) -> None:
    """Fails."""
    with alarms.watched(request()):
        raise error


@flow(name="outer-of-two")
def outer(error: Exception) -> None:
    """Fails as what it calls does."""
    with alarms.watched(request()):
        inner(error)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyError("text of a trace"), "the run failed at run: KeyError."),
        (UsageError("no such file"), "no such file"),
        (RunError("no JSON", "curate", "curate-g02"), "curate curate-g02: no JSON"),
        (RunStopped("cancelled"), None),
    ],
)
def test_an_error_is_told_once_whether_it_is_ours_or_not(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str | None
) -> None:
    with hook() as (url, got):
        monkeypatch.setenv("COMBEE_ALARM_URL", url)
        with pytest.raises(type(error)):
            outer(error)
    assert len(got) == (1 if says else 0)
    assert all(says and says in one["message"] and "text of a trace" not in one["message"] for one in got)
    assert is_told(error)


def test_a_fault_of_the_code_in_the_midst_of_a_run_is_told_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "day.jsonl").write_bytes(day_jsonl(World(0), 4, 0, date(2026, 3, 2)))
    source = Source(uris=(str(tmp_path / "day.jsonl"),))
    with hook() as (url, got):
        monkeypatch.setenv("COMBEE_ALARM_URL", url)
        # Somebody listens there, so that only Dask's own code finds that it is no scheduler's address.
        settings = RunSettings(dask=f"no-such-protocol://{urlsplit(url).netloc}")
        with pytest.raises(ValueError, match="no-such-protocol"):
            epoch(RunRequest(store=f"file://{tmp_path}/store", source=source, settings=settings))
    assert [one["kind"] for one in got] == ["failed"]


def test_any_error_can_be_marked_and_one_that_was_not_is_not() -> None:
    for error in (KeyError(), CombeeError("x")):
        assert not is_told(error)
        mark_told(error)
        assert is_told(error)
    assert not is_told(CombeeError("another"))
