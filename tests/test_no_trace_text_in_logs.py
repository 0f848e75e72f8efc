"""What a trace says, and what a model answers, is in no log: not on stderr, not on the server, not in an alarm."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Combee
from fake_provider import FakeProvider, Received, Reply, answer, cut, failure

from combee_core.simulation.chat import read_chat

MARKER = "account 4417-1234-5678-9113 of the customer Wilhelmina"
COUNT = 24


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A day on which every run holds the marker wherever text can be, and lines that nobody can read hold it too."""
    rows = [
        {
            "id": f"t{n:02d}",
            "input": f"Refund {n} dollars to the {MARKER}.",
            "output": f"The {MARKER} has {n}.",
            "score": 0,
            "feedback": f"Expected {n + 100} for the {MARKER}.",
        }
        for n in range(COUNT)
    ]
    broken = [f'{{"id": "b1", "input": "{MARKER}', f'["{MARKER}"]', json.dumps({"id": "b2", "note": MARKER})]
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "2026-03-02.jsonl").write_text("\n".join([*map(json.dumps, rows), *broken]))
    return folder


class Quoting:
    """A provider that answers well, but for faults that quote the prompt: each kind of fault once or for good."""

    def __init__(self) -> None:
        self.curates = False
        self.seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, asked: Received) -> Reply:
        text = asked.body["messages"][-1]["content"]
        with self._lock:
            self.seen[text] += 1
            first = self.seen[text] == 1
        good = read_chat(json.dumps(asked.body).encode()).text
        number = next((n for n in range(COUNT) if f"Refund {n} dollars" in text), -1)
        if number < 0:
            return answer(good) if self.curates else answer(f"I would rather talk about the {MARKER}.")
        if number == 7:
            return answer(None, refusal=f"I cannot talk about the {MARKER}.")
        return self._fault(number, text, good) if first else answer(good)

    def _fault(self, number: int, text: str, good: str) -> Reply:
        return {
            0: answer(f"Let me think about this: {text}"),
            1: failure(500, f"the worker died on 'Refund 1 dollars to the {MARKER}'"),
            2: Reply(f"<html>{MARKER}</html>".encode()),
            3: cut(answer(f"{MARKER} " * 50)),
            4: answer(f'{{"key_insight": "{MARKER}", "key_insight": "{MARKER}"', finish="length"),
            5: answer(json.dumps([{"insight": MARKER}])),
            6: answer(f'{{"reasoning": "{MARKER}"}}'),
        }.get(number, answer(good))


def prefect_logs(home: Path) -> list[dict[str, Any]]:
    """Every log line that the tests' server holds."""
    api = f"http://127.0.0.1:{json.loads((home / 'server.json').read_text())['port']}/api"

    def pages() -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            body = json.dumps({"offset": offset, "limit": 200, "sort": "TIMESTAMP_DESC"}).encode()
            request = urllib.request.Request(f"{api}/logs/filter", body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as done:
                page = json.load(done)
            yield from page
            offset += len(page)
            if len(page) < 200:
                return

    return list(pages())


def test_no_text_of_a_trace_or_an_answer_is_in_any_log_whatever_goes_wrong(
    combee: Combee, traces: Path, tmp_path: Path
) -> None:
    script = Quoting()
    with FakeProvider(script) as provider:
        args = ("learn", traces, "--store", f"file://{tmp_path}/store")
        model = ("--model", "openai/served", "--api-base", provider.url, "--retry-delay", "0.05", "--batch-size", "40")
        speaking = replace(combee, environ={"COMBEE_LOG": "json"})
        failed = speaking(*args, *model, "--json")
        script.curates = True
        done = speaking(*args, *model, "--alarm-learned", "1", "--json")
    assert failed.code == 1, failed.err[-3000:]
    assert done.code == 0, done.err[-3000:]
    assert done.json["accounting"]["learned"] > COUNT // 2
    assert done.json["accounting"]["refused"] == 1
    lines = [json.loads(line) for line in (failed.err + done.err).splitlines()]
    assert {"alarm", "batch-started", "run-finished", "failed"} <= {line["event"] for line in lines}
    assert {line["kind"] for line in lines if line["event"] == "alarm"} == {"failed", "little-learned"}
    ids = {failed.json["flow_run_id"], done.json["flow_run_id"]}
    kept = prefect_logs(combee.home)
    assert ids <= {log["flow_run_id"] for log in kept}
    for word in ("account 4417", "Wilhelmina", "Refund"):
        assert word not in failed.err + done.err
        assert not [log["message"] for log in kept if word in log["message"]]
