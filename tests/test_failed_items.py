"""One item of many fails: the line that says so names trace, step, model, the place that failed and the cause."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from simserver import SimulatedServer, simulated_server

from combee_core.config import ModelSettings, RunRequest, RunSettings, Source
from combee_core.errors import RunError
from combee_core.simulation.day import day_jsonl
from combee_core.simulation.world import World
from flows.epoch import epoch

MODEL = "openai/simulated/overload"
TRACES = 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path) as running:
        yield running


@pytest.mark.usefixtures("prefect_api")
def test_of_one_trace_that_fails_a_single_line_says_everything(
    server: SimulatedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "day.jsonl"
    path.write_bytes(day_jsonl(World(0), TRACES, 0, date(2026, 3, 2)))
    source = Source(uris=(str(path),))
    unlucky, *_ = map(json.loads, path.read_text().splitlines())
    said = re.search(r"amount of \d+ over \d+", unlucky["input"])
    assert said
    server.set_faults(f"stage=reflect,contains={said[0]},kind=malformed")
    model = ModelSettings(model=MODEL, api_base=server.url, retries=0, retry_delay=0)
    settings = RunSettings(model=model, batch_size=TRACES, merge="paper")
    request = RunRequest(playbook="p", store=f"file://{tmp_path}/store", source=source, settings=settings)
    with caplog.at_level("WARNING"):
        result = epoch(request)

    (fate,) = result.fates
    assert (result.status, fate.trace_id, fate.fate) == ("done", unlucky["id"], "failed")
    (line,) = [one.getMessage() for one in caplog.records if getattr(one, "event", "") == "items-failed"]
    assert line.startswith(f"reflect: 1 of {TRACES}: reflect-{unlucky['id']} failed: ")
    cause = f"AnswerMalformed: {MODEL}@{server.url}: "
    assert cause in line
    assert fate.reason.startswith(cause)
    assert "\n" not in line

    strict = settings.model_copy(update={"max_failed": 0.0})
    with pytest.raises(RunError, match=f"1 of {TRACES} reflections failed"):
        epoch(request.model_copy(update={"settings": strict}))
