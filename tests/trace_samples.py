"""Builders of small trace files: a railway desk whose agent books, changes and cancels seats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from combee_core.types import TraceFile

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
POLICY = "You work at the desk of the Northern Line. Confirm before you change a booking."
SEAT = {"train": "NL14", "day": "2026-03-05", "fare": "flex", "pay": ["voucher_1", "card_9"]}


def file(data: bytes | str, uri: str = "day/traces.jsonl", modified: datetime = NOON) -> TraceFile:
    """A trace file with this content."""
    return TraceFile(uri=uri, data=data.encode() if isinstance(data, str) else data, modified=modified)


def call(tool: str, arguments: Any, result: str = "done", text: str | None = None) -> list[dict[str, Any]]:
    """The two messages of a tool call: the agent's, and the tool's answer."""
    function = {"name": tool, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
    called = {"id": "call_1", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": text, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_1", "name": tool, "content": result},
    ]


def say(text: str) -> dict[str, Any]:
    """A message of the agent."""
    return {"role": "assistant", "content": text}


def ask(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def tau_run(
    talk: Iterable[Mapping[str, Any]] = (),
    expected: Iterable[tuple[str, Mapping[str, Any]]] = (),
    outputs: Iterable[str] = (),
    reward: Any = 0.0,
    **changes: Any,
) -> dict[str, Any]:
    """One run: a policy, one question, then `talk`. `changes` replace fields of the run."""
    actions = [{"name": name, "kwargs": dict(kwargs)} for name, kwargs in expected]
    task = {"actions": actions, "outputs": list(outputs), "instruction": "You are Ada. You want a seat."}
    return {
        "task_id": 7,
        "trial": 0,
        "reward": reward,
        "info": {"task": task | {"user_id": "ada_1"}, "reward_info": {"reward": reward}},
        "traj": [{"role": "system", "content": POLICY}, ask("A seat to Lund, please"), *talk],
    } | changes


def tau_file(runs: Iterable[Any], uri: str = "day/runs.json", modified: datetime = NOON) -> TraceFile:
    """A tau-bench file: one array of runs."""
    return file(json.dumps(list(runs)), uri, modified)


def tau_day(count: int = 6) -> TraceFile:
    """A file of `count` runs of different tasks, right and wrong in turn."""
    runs = []
    for number in range(count):
        wanted = SEAT | {"train": f"NL{number}"}
        made = wanted if number % 2 == 0 else wanted | {"fare": "basic"}
        talk = [*call("book_seat", made), say("Your seat is booked.")]
        runs.append(tau_run(talk, [("book_seat", wanted)], reward=float(number % 2 == 0), task_id=number))
    return tau_file(runs)


def lines(rows: Iterable[Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def chat_jsonl(rows: Iterable[Any], uri: str = "day/chat.jsonl", modified: datetime = NOON) -> TraceFile:
    """A chat log; see `chat_row`, `batch_row` and `gateway_row`."""
    return file(lines(rows), uri, modified)


def chat_row(answer: Any = "Platform 4.", question: Any = "Where is NL14?", **more: Any) -> dict[str, Any]:
    """A fine-tuning row."""
    return {"messages": [{"role": "system", "content": POLICY}, ask(question), say(answer)]} | more


def batch_row(answer: Any = "Platform 4.", **more: Any) -> dict[str, Any]:
    """A batch row: the answer alone."""
    body = {"id": "chatcmpl-b", "created": 1772452800, "choices": [{"message": say(answer)}]}
    return {"custom_id": "batch-1", "response": {"status_code": 200, "body": body}, "error": None} | more


def gateway_row(answer: Any = "Platform 4.", **more: Any) -> dict[str, Any]:
    """A gateway row: the request and its response."""
    choice = {"index": 0, "finish_reason": "stop", "message": say(answer)}
    response = {"id": "chatcmpl-g", "created": 1772452800, "choices": [choice]}
    return {"request": {"model": "m", "messages": [ask("Where is NL14?")]}, "response": response} | more


def plain_jsonl(rows: Iterable[Any], uri: str = "day/plain.jsonl", modified: datetime = NOON) -> TraceFile:
    """A file of plain rows."""
    return file(lines(rows), uri, modified)


def plain_row(number: int = 1, **more: Any) -> dict[str, Any]:
    """A plain row about one question."""
    row = {
        "id": f"q{number}",
        "input": f"What is {number} + {number}?",
        "output": str(2 * number),
        "score": 1,
    }
    return row | more
