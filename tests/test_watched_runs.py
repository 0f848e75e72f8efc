"""Errors of runs that nobody looks at: each is told once, however many flows it passes through."""

from __future__ import annotations

import pytest
from hooks import hook
from prefect import flow
from run_records import request

from combee_core.errors import CombeeError, RunError, RunStopped, UsageError, is_told, mark_told
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


def test_any_error_can_be_marked_and_one_that_was_not_is_not() -> None:
    for error in (KeyError(), CombeeError("x")):
        assert not is_told(error)
        mark_told(error)
        assert is_told(error)
    assert not is_told(CombeeError("another"))
