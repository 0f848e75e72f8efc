"""Measured delays are kept for the next run until the delays drift away from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from asking import memory
from run_records import request

from combee_core import measured
from combee_core.batch_size import fit
from combee_core.config import ModelSettings, Source
from combee_core.measured import Drift, Measured, Subject
from combee_core.sizes import Observation

WHEN = datetime(2026, 3, 2, tzinfo=UTC)
SUBJECT = Subject(learner="ace", prompts="f", model="m", source=("traces", "/traces"))


def observations(factor: float = 1.0) -> tuple[Observation, ...]:
    return tuple(Observation(batch_size=n, delay=factor * 20 * n**0.25) for n in (5, 10, 20, 40))


def known(run: str = "r1", factor: float = 1.0) -> Measured:
    return Measured(subject=SUBJECT, total=200, run=run, when=WHEN, observations=observations(factor))


def test_a_curve_is_found_by_learner_prompts_model_and_source() -> None:
    store = memory()
    assert measured.known(store, SUBJECT) is None
    measured.remember(store, known())
    assert measured.known(store, SUBJECT) == known()
    for change in ({"learner": "x"}, {"prompts": "x"}, {"model": "x"}, {"source": ("traces", "/x")}):
        assert measured.known(store, SUBJECT.model_copy(update=change)) is None
    assert measured.all_known(store) == [known()]


def test_the_newest_curve_comes_last() -> None:
    store = memory()
    for days, name in ((2, "a"), (0, "b"), (1, "c")):
        of = SUBJECT.model_copy(update={"model": name})
        measured.remember(store, known().model_copy(update={"subject": of, "when": WHEN + timedelta(days=days)}))
    assert [one.subject.model for one in measured.all_known(store)] == ["b", "c", "a"]


def test_the_subject_is_read_off_the_request_and_the_day_is_not_in_it() -> None:
    asked = request(source=Source(uris=("/b", "/a")))
    made = measured.subject_of(asked, "m", "f")
    assert made == Subject(learner="ace", prompts="f", model="m", source=("traces", "/a", "/b"))
    other = request(source=Source(uris=("/a", "/b"), limit=3), model=ModelSettings(model="x"))
    assert measured.subject_of(other, "m", "f") == made


def test_a_newer_run_replaces_the_curve_and_the_same_run_does_not() -> None:
    store = memory()
    measured.remember(store, known())
    measured.remember(store, known(factor=9.0))
    assert measured.known(store, SUBJECT) == known()
    measured.remember(store, known("r2", 2.0))
    assert measured.known(store, SUBJECT) == known("r2", 2.0)


def test_iterations_on_the_curve_do_not_drift_and_slower_ones_do() -> None:
    curve = fit(observations(), 200)
    assert measured.deviation_of(observations(), curve) == pytest.approx(0.0, abs=0.01)
    assert measured.deviation_of(observations(1.6), curve) == pytest.approx(0.6, abs=0.02)
    assert measured.deviation_of(observations(0.5), curve) == pytest.approx(-0.5, abs=0.02)


def test_what_cannot_be_compared_is_left_out() -> None:
    curve = fit(observations(), 200)
    odd = [
        Observation(batch_size=20, delay=None),
        Observation(batch_size=2, delay=9999.0),
        Observation(batch_size=400, delay=9999.0),
    ]
    assert measured.deviation_of(odd, curve) is None
    assert measured.deviation_of([*odd, *observations()], curve) == pytest.approx(0.0, abs=0.01)


def test_cold_iterations_count_where_there_is_no_other() -> None:
    curve = fit(observations(), 200)
    assert curve is not None
    cold = [one.model_copy(update={"cold": True}) for one in observations(1.6)]
    assert measured.deviation_of(cold, curve) == pytest.approx(0.6, abs=0.02)
    assert measured.deviation_of([*cold, *observations()], curve) == pytest.approx(0.0, abs=0.01)


def test_drift_is_noted_once_a_run_and_beyond_the_share_the_curve_is_stale() -> None:
    store = memory()
    measured.note_drift(store, SUBJECT, Drift(run="r2", deviation=0.2), 0.5)
    assert measured.known(store, SUBJECT) is None
    measured.remember(store, known())
    for deviation in (0.2, 0.9):
        measured.note_drift(store, SUBJECT, Drift(run="r2", deviation=deviation), 0.5)
    fresh = measured.known(store, SUBJECT)
    assert fresh is not None
    assert (fresh.drifts, fresh.stale) == ((Drift(run="r2", deviation=0.2),), False)
    measured.note_drift(store, SUBJECT, Drift(run="r3", deviation=-0.6), 0.5)
    measured.note_drift(store, SUBJECT, Drift(run="r4", deviation=0.0), 0.5)
    stale = measured.known(store, SUBJECT)
    assert stale is not None
    assert stale.stale, "one run on the curve does not make it right again"
    measured.remember(store, known("r5"))
    assert measured.known(store, SUBJECT) == known("r5")


def test_a_record_that_cannot_be_read_is_measured_anew() -> None:
    store = memory()
    store.create(SUBJECT.key, b"{")
    assert measured.known(store, SUBJECT) is None
    measured.remember(store, known())
    assert measured.known(store, SUBJECT) == known()
